"""The events of an attempt."""

from __future__ import annotations

from typing import Any

import pytest

from graphd._gen.v1 import event_pb2
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.attempt import Attempt
from graphd.worker.progress import Progress


class SessionStub:
    """A stream that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[ws.ConnectRequest] = []
        self.send_request = self.sent.append
        self.progress = Progress()
        self.flush_soon = self.progress.add_emitting

    @property
    def events(self) -> list[str]:
        return [item.value.json for request in self.sent for item in request.update.emit.items]


def attempt(session: Any) -> Attempt:
    lease = pb.TaskLease(token=b"a")
    return Attempt(pb.TaskAssignment(lease=lease, emit=[event_pb2.CHANNEL_CUSTOM]), session)


def test_a_result_says_how_many_events_went_before_it() -> None:
    session = SessionStub()
    a = attempt(session)
    for n in range(5):
        a.emit_event("custom", "", n, False)
        if n % 2:
            a.flush_events()
    rest, sent = a.take_events()
    assert session.events == ["0", "1", "2", "3"]
    assert sent == 4
    assert rest is not None and [item.value.json for item in rest.items] == ["4"]
    assert a.take_events() == (None, 4)


def test_of_too_many_events_those_are_dropped_that_may_be() -> None:
    session = SessionStub()
    a = attempt(session)
    for n in range(1500):
        a.emit_event("custom", "", n, False)
    rest, sent = a.take_events()
    assert (sent, session.events) == (0, [])
    assert rest is not None and (len(rest.items), rest.dropped) == (1000, 500)


@pytest.mark.parametrize("size", [1, 2000])
def test_events_that_must_be_kept_are_sent_in_time(size: int) -> None:
    session = SessionStub()
    a = attempt(session)
    said = [f"{n} {'x' * size}" for n in range(2500)]
    for text in said:
        a.emit_event("custom", "", text, True)
    rest, sent = a.take_events()
    assert rest is not None and rest.dropped == 0
    assert sent == len(session.events)
    assert [*session.events, *(item.value.json for item in rest.items)] == [f'"{text}"' for text in said]
    assert all(request.ByteSize() < 2 << 20 for request in session.sent)


def test_a_task_that_is_lost_or_repeats_itself_sends_no_events() -> None:
    session = SessionStub()
    a = attempt(session)
    a.muted = lambda: True
    a.emit_event("custom", "", 1, True)
    a.muted = lambda: False
    a.lost = True
    a.emit_event("custom", "", 2, True)
    a.lost = False
    a.emit_event("messages", "", 3, False)
    assert a.take_events() == (None, 0), "what the server did not ask for is not sent"
