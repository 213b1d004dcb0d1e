"""Results on the stream of a session."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.attempt import Attempt
from graphd.worker.result_stream import ResultStream


def attempt(token: bytes) -> Attempt:
    session: Any = None  # nothing is sent
    return Attempt(pb.TaskAssignment(lease=pb.TaskLease(token=token)), session)


def request(token: bytes, note: str = "") -> ws.CompleteTaskRequest:
    cancelled = pb.TaskCancelled(note=note)
    return ws.CompleteTaskRequest(lease_token=token, result=pb.TaskResult(cancelled=cancelled))


@pytest.fixture
def sent() -> list[ws.ConnectRequest]:
    return []


@pytest.fixture
def results(sent: list[ws.ConnectRequest]) -> ResultStream:
    found = ResultStream()
    found.open_stream(sent.append)
    return found


def test_a_result_waits_for_its_answer(results: ResultStream, sent: list[ws.ConnectRequest]) -> None:
    a = attempt(b"a")
    assert results.send_result(a, request(b"a"))
    assert sent == [ws.ConnectRequest(complete=request(b"a"))]
    under_way = results.take_answered(b"a")
    assert under_way is not None and under_way.attempt is a
    assert results.take_answered(b"a") is None
    assert results.close_stream() == []


def test_what_the_stream_did_not_answer_goes_by_calls(results: ResultStream) -> None:
    for token in (b"a", b"b"):
        assert results.send_result(attempt(token), request(token))
    results.take_answered(b"a")
    assert [left.request for left in results.close_stream()] == [request(b"b")]
    assert results.take_answered(b"b") is None, "a late answer changes nothing"
    assert results.close_stream() == []


def test_a_result_that_the_stream_would_hold_up_goes_by_a_call(
    results: ResultStream, sent: list[ws.ConnectRequest]
) -> None:
    assert not results.send_result(attempt(b"a"), request(b"a", "x" * 100_000)), "it is large"
    results.record_traffic()
    assert not results.send_result(attempt(b"a"), request(b"a")), "it would stand behind events"
    results.close_stream()
    assert not results.send_result(attempt(b"a"), request(b"a")), "there is no stream"
    assert sent == []


def test_the_thread_of_a_result_goes_on_with_what_follows(results: ResultStream) -> None:
    result = results.send_result(attempt(b"a"), request(b"a"))
    assert result is not None
    job: Any = object()
    threading.Timer(0.01, result.set_next, [job]).start()
    assert result.wait_for_next() is job


def test_what_follows_too_late_is_for_another_thread(results: ResultStream) -> None:
    result = results.send_result(attempt(b"a"), request(b"a"))
    assert result is not None
    assert result.wait_for_next() is None
    job: Any = object()
    assert not result.set_next(job)
