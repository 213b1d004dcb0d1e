"""What attempts tell while they run."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from graphd._gen.v1 import event_pb2
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.attempt import Attempt
from graphd.worker.progress import Progress


class SessionStub:
    """A stream that keeps what is sent, and the progress of its attempts."""

    def __init__(self) -> None:
        self.sent: list[ws.ConnectRequest] = []
        self.send_request = self.sent.append
        self.progress = Progress()
        self.flush_soon = self.progress.add_emitting

    def begin(self, token: bytes, *, age: float = 0.0) -> Attempt:
        session: Any = self
        assignment = pb.TaskAssignment(lease=pb.TaskLease(token=token), emit=[event_pb2.CHANNEL_CUSTOM])
        attempt = Attempt(assignment, session)
        attempt.started -= age
        self.progress.add_begun(attempt)
        return attempt

    def tick(self) -> list[str]:
        """The events, and the tasks that are said to run, of one look."""
        self.sent.clear()
        self.progress.send()
        return [said for request in self.sent for said in _read(request.update)]


def _read(update: pb.TaskUpdate) -> list[str]:
    if update.HasField("alive"):
        return [f"{update.lease_token.decode()} runs"]
    return [item.value.json for item in update.emit.items]


def test_tasks_are_announced_once_and_only_if_they_take_longer() -> None:
    session = SessionStub()
    ended, lost, told, old = (session.begin(token, age=1) for token in (b"ended", b"lost", b"told", b"old"))
    ended.ended = lost.lost = told.announced = True
    session.begin(b"older", age=0.5)
    young = session.begin(b"young")
    assert session.tick() == ["old runs", "older runs"]
    assert old.announced and not young.announced
    young.started -= 1
    assert session.tick() == ["young runs"]
    assert session.tick() == []


def test_the_events_of_a_task_announce_it() -> None:
    session = SessionStub()
    session.begin(b"a", age=1).emit_event("custom", "", 1, False)
    assert session.tick() == ["1"]
    assert session.tick() == []


def test_only_tasks_with_events_are_looked_at() -> None:
    session = SessionStub()
    loud, quiet = session.begin(b"loud"), session.begin(b"quiet")
    quiet.flush_events = None  # type: ignore[method-assign, assignment]
    for n in range(3):
        loud.emit_event("custom", "", n, False)
    assert session.tick() == ["0", "1", "2"]
    assert len(session.sent) == 1, "in one message"
    assert session.tick() == []
    loud.emit_event("custom", "", 3, False)
    assert session.tick() == ["3"]


def test_events_that_went_with_the_result_are_not_sent_again() -> None:
    session = SessionStub()
    attempt = session.begin(b"a")
    attempt.emit_event("custom", "", 1, False)
    rest, sent = attempt.take_events()
    assert rest is not None and (len(rest.items), sent) == (1, 0)
    attempt.ended = True
    assert session.tick() == []


def test_no_event_is_lost_or_doubled_between_threads() -> None:
    session = SessionStub()
    attempts = [session.begin(str(n).encode()) for n in range(4)]
    over = threading.Event()

    def emit(attempt: Attempt) -> None:
        for n in range(500):
            attempt.emit_event("custom", "", n, True)

    def look() -> None:
        while not over.is_set():
            session.progress.send()

    emitting, looking = [threading.Thread(target=emit, args=[a]) for a in attempts], threading.Thread(target=look)
    for thread in [looking, *emitting]:
        thread.start()
    for thread in emitting:
        thread.join()
    over.set()
    looking.join()
    session.progress.send()
    for attempt in attempts:
        items = [i for r in session.sent if r.update.lease_token == attempt.token for i in r.update.emit.items]
        assert [item.value.json for item in items] == [str(n) for n in range(500)]
        assert attempt.take_events() == (None, 500)


@pytest.mark.parametrize("news", ["begun", "emitting", "wake"])
def test_news_end_the_wait_for_them(news: str) -> None:
    session = SessionStub()
    attempt = session.begin(b"a")
    session.progress.send()
    attempt.started -= 1
    session.progress.send()  # announced: nothing is left to tell
    waited = threading.Thread(target=session.progress.wait_for_news, args=[60])
    waited.start()
    match news:
        case "begun":
            session.begin(b"b")
        case "emitting":
            attempt.emit_event("custom", "", 1, False)
        case "wake":
            while waited.is_alive():  # what comes before the wait is not waited for, and does not end it
                session.progress.wake()
    waited.join(30)
    assert not waited.is_alive()


def test_what_is_to_be_told_is_not_waited_for() -> None:
    session = SessionStub()
    session.begin(b"a")
    session.progress.wait_for_news(60)


def test_without_news_the_wait_ends_in_time() -> None:
    SessionStub().progress.wait_for_news(0.01)
