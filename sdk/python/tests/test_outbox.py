"""What waits to be sent on the stream of a session."""

from __future__ import annotations

import queue
import threading

import pytest

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.outbox import Outbox


def request(note: int, size: int = 0) -> ws.ConnectRequest:
    return ws.ConnectRequest(nack=ws.Nack(reason=f"{note} {'x' * size}"))


def filled(sizes: list[int], *, max_message_bytes: int = 8 << 20) -> Outbox:
    """An outbox with messages of some sizes, numbered from 0."""
    outbox = Outbox()
    if max_message_bytes:
        outbox.allow_batches(max_message_bytes)
    for number, size in enumerate(sizes):
        outbox.put(request(number, size))
    return outbox


def read(message: ws.ConnectRequest | None) -> list[int]:
    """The numbers of the messages in one."""
    assert message is not None
    parts = message.batch.requests if message.HasField("batch") else [message]
    assert not message.HasField("batch") or len(parts) > 1
    return [int(part.nack.reason.split()[0]) for part in parts]


def take_all(outbox: Outbox) -> list[list[int]]:
    taken = []
    while True:
        try:
            taken.append(read(outbox.take(0)))
        except queue.Empty:
            return taken


def test_a_server_that_knows_no_batches_gets_none() -> None:
    assert take_all(filled([0, 0, 0], max_message_bytes=0)) == [[0], [1], [2]]


def test_what_waits_goes_in_one_message() -> None:
    outbox = filled([0])
    assert take_all(outbox) == [[0]]
    assert take_all(filled([0] * 100)) == [list(range(64)), list(range(64, 100))]


def test_a_large_message_goes_alone_and_in_its_turn() -> None:
    large = 100_000
    assert take_all(filled([0, 0, large, 0, large, large, 0, 0])) == [[0, 1], [2], [3], [4], [5], [6, 7]]
    assert take_all(filled([400] * 5, max_message_bytes=2000)) == [[0, 1], [2, 3], [4]]


def test_the_end_comes_after_what_was_put_before_it() -> None:
    outbox = filled([0, 0, 100_000])
    outbox.close()
    outbox.put(request(3))
    assert [read(outbox.take(0)) for _ in range(2)] == [[0, 1], [2]]
    assert [outbox.take(0) for _ in range(2)] == [None, None]


def test_nothing_waits_for_more_to_come() -> None:
    outbox = filled([])
    with pytest.raises(queue.Empty):
        outbox.take(0.01)
    threading.Timer(0.01, outbox.put, [request(0)]).start()
    assert read(outbox.take(60)) == [0]


def test_tasks_of_one_moment_are_announced_in_one_message() -> None:
    outbox = filled([])
    for token in (b"a", b"b"):
        update = pb.TaskUpdate(lease_token=token)
        update.alive.SetInParent()
        outbox.put(ws.ConnectRequest(update=update))
    message = outbox.take(0)
    assert message is not None
    assert [part.update.lease_token for part in message.batch.requests] == [b"a", b"b"]
