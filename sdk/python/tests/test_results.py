"""Results on the stream of a session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.attempt import Attempt
from graphd.worker.results import Results


def attempt(token: bytes) -> Attempt:
    line: Any = None  # nothing is sent
    return Attempt(pb.TaskAssignment(lease=pb.TaskLease(token=token)), line)


def request(token: bytes, note: str = "") -> ws.CompleteTaskRequest:
    cancelled = pb.TaskCancelled(note=note)
    return ws.CompleteTaskRequest(lease_token=token, result=pb.TaskResult(cancelled=cancelled))


@pytest.fixture
def sent() -> list[ws.ConnectRequest]:
    return []


@pytest.fixture
def results(sent: list[ws.ConnectRequest]) -> Results:
    found = Results()
    found.open(sent.append)
    return found


def test_a_result_waits_for_its_answer(results: Results, sent: list[ws.ConnectRequest]) -> None:
    a = attempt(b"a")
    assert results.send(a, request(b"a"))
    assert sent == [ws.ConnectRequest(complete=request(b"a"))]
    under_way = results.answered(b"a")
    assert under_way is not None and under_way.attempt is a
    assert results.answered(b"a") is None
    assert results.close() == []


def test_what_the_stream_did_not_answer_goes_by_calls(results: Results) -> None:
    for token in (b"a", b"b"):
        assert results.send(attempt(token), request(token))
    results.answered(b"a")
    assert [left.request for left in results.close()] == [request(b"b")]
    assert results.answered(b"b") is None, "a late answer changes nothing"
    assert results.close() == []


def test_a_result_that_the_stream_would_hold_up_goes_by_a_call(results: Results, sent: list[ws.ConnectRequest]) -> None:
    assert not results.send(attempt(b"a"), request(b"a", "x" * 100_000)), "it is large"
    results.noise()
    assert not results.send(attempt(b"a"), request(b"a")), "it would stand behind events"
    results.close()
    assert not results.send(attempt(b"a"), request(b"a")), "there is no stream"
    assert sent == []


def test_the_thread_of_a_result_goes_on_with_what_follows(results: Results) -> None:
    result = results.send(attempt(b"a"), request(b"a"))
    assert result is not None
    job: Any = object()
    threading.Timer(0.01, result.follow, [job]).start()
    assert result.wait() is job


def test_what_follows_too_late_is_for_another_thread(results: Results) -> None:
    result = results.send(attempt(b"a"), request(b"a"))
    assert result is not None
    assert result.wait() is None
    job: Any = object()
    assert not result.follow(job)
