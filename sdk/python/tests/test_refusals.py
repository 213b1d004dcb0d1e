"""Every reason of the server has an exception, and what can be repeated is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2

from graphd import START, InMemorySaver, StateGraph
from graphd._gen.client import status_pb2
from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.dev import DevServer
from graphd.errors import (
    AlreadyExistsError,
    CallTimeoutError,
    ConflictError,
    GraphdError,
    InvalidResumeError,
    LimitExceededError,
    NonDeterministicNode,
    NotFoundError,
    OpenQuestionsError,
    OutcomeUnknownError,
    ServerBusyError,
    ServerUnavailableError,
    StoreFullError,
    StoreReplacedError,
)
from graphd.runtime.failures import GENERIC, RunFailed, node_error
from graphd.transport import backoff
from graphd.transport.errors import CLASSES, to_graphd_error
from graphd.transport.server import retry_write, server_at

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
ERRORS = PAGE.partition("\n## Errors\n")[2].partition("\n## ")[0]


def test_every_reason_of_the_table_has_an_exception() -> None:
    table = {
        reason
        for line in ERRORS.splitlines()
        if line.count("|") >= 4
        for reason in re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", line.split("|")[2])
    }
    assert len(table) > 50
    assert set(CLASSES) == table


def test_every_reason_of_failed_runs_has_an_exception() -> None:
    told = ERRORS.partition("### Failed runs")[2]
    reasons = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+|INTERNAL)`", told)) - {"TIMED_OUT"}
    assert {"LIMIT_EXCEEDED", "NON_DETERMINISTIC_NODE", "INTERNAL"} <= reasons
    generic = {r for r in reasons if type(node_error(payload_pb2.Failure(reason=r))) is RunFailed}
    assert generic == set(GENERIC)
    assert isinstance(node_error(payload_pb2.Failure(reason="NON_DETERMINISTIC_NODE")), NonDeterministicNode)


class Refused(grpc.RpcError):  # type: ignore[misc]
    """What grpc raises."""

    def __init__(self, code: grpc.StatusCode, reason: str, delay: float = 0, **metadata: str) -> None:
        status = status_pb2.Status()
        self._code = code
        if reason:
            self._add(status, "ErrorInfo", status_pb2.ErrorInfo(reason=reason, metadata=metadata))
        if delay:
            info = status_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(int(delay * 1000))
            self._add(status, "RetryInfo", info)
        self._trailer = (("grpc-status-details-bin", status.SerializeToString()),)

    @staticmethod
    def _add(status: Any, name: str, message: Any) -> None:
        url = f"type.googleapis.com/google.rpc.{name}"
        status.details.append(any_pb2.Any(type_url=url, value=message.SerializeToString()))

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "refused"

    def trailing_metadata(self) -> Any:
        return self._trailer


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN", OutcomeUnknownError),
        (grpc.StatusCode.UNAVAILABLE, "STORE_BUSY", ServerUnavailableError),
        (grpc.StatusCode.UNAVAILABLE, "", ServerUnavailableError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL", StoreFullError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_SUBSCRIBERS", ServerBusyError),
        (grpc.StatusCode.FAILED_PRECONDITION, "STORE_REPLACED", StoreReplacedError),
        (grpc.StatusCode.NOT_FOUND, "THREAD_NOT_FOUND", NotFoundError),
        (grpc.StatusCode.ALREADY_EXISTS, "GRAPH_EXISTS", AlreadyExistsError),
        (grpc.StatusCode.ABORTED, "ETAG_MISMATCH", ConflictError),
        (grpc.StatusCode.FAILED_PRECONDITION, "THREAD_INTERRUPTED", OpenQuestionsError),
        (grpc.StatusCode.INVALID_ARGUMENT, "RESPONSE_SCHEMA_MISMATCH", InvalidResumeError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", CallTimeoutError),
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", GraphdError),
        (grpc.StatusCode.ABORTED, "OF_A_LATER_SERVER", GraphdError),
    ],
)
def test_reasons_have_classes(code: grpc.StatusCode, reason: str, kind: type[GraphdError]) -> None:
    problem = to_graphd_error(Refused(code, reason))
    assert type(problem) is kind
    assert problem.reason == reason


def test_limits_and_delays_are_told() -> None:
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    problem = to_graphd_error(Refused(code, "TOO_MANY_GRAPHS", 1.5, limit="max-graphs", most="1000"))
    assert isinstance(problem, LimitExceededError)
    assert (problem.limit, problem.most, problem.need) == ("max-graphs", 1000, None)
    assert problem.retry_delay == 1.5
    failed = node_error(
        payload_pb2.Failure(reason="LIMIT_EXCEEDED", details={"limit": "max-sends", "most": "1", "need": "2"})
    )
    assert isinstance(failed, LimitExceededError)
    assert (failed.limit, failed.most, failed.need) == ("max-sends", 1, 2)
    assert to_graphd_error(Refused(code, "TOO_MANY_RUNS", 1)).retry_delay == 1
    assert to_graphd_error(Refused(grpc.StatusCode.NOT_FOUND, "RUN_NOT_FOUND")).retry_delay is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only entry is the time, which passes when the code sleeps."""
    now = [100.0]
    monkeypatch.setattr("graphd.transport.backoff.time.monotonic", lambda: now[0])
    monkeypatch.setattr("graphd.transport.server.time.sleep", lambda s: now.__setitem__(0, now[0] + s))
    return now


def lost(times: int, method: Callable[[Any], Any], ids: list[str]) -> Callable[[Any], Any]:
    """The method, whose answer does not arrive so many times."""

    def call(request: Any) -> Any:
        ids.append(request.request_id)
        answer = method(request)
        if len(ids) <= times:
            raise Refused(grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN", 1)
        return answer

    return call


def test_a_call_of_unknown_outcome_is_repeated_with_its_request_id(server: DevServer, clock: list[float]) -> None:
    threads = server_at(server.address).stubs.threads
    ids: list[str] = []
    request = ts.CreateThreadRequest(thread_id="outcome-unknown", request_id="once")
    assert retry_write(lost(3, threads.CreateThread, ids), request).thread_id == "outcome-unknown"
    assert ids == ["once"] * 4, "and not THREAD_EXISTS: each call is the first one"


def test_repeating_has_an_end(clock: list[float]) -> None:
    ids: list[str] = []
    with pytest.raises(OutcomeUnknownError):
        retry_write(lost(10_000, lambda request: None, ids), ts.CreateThreadRequest(request_id="once"))
    assert 3 < len(ids) < 100
    assert set(ids) == {"once"}


def test_a_call_without_a_request_id_is_not_repeated() -> None:
    with pytest.raises(AssertionError):
        retry_write(lambda request: None, ts.CreateThreadRequest())


def test_writes_of_the_sdk_have_request_ids(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    """The outcome of each is unknown once, and nothing happens twice."""
    saver = InMemorySaver(server=server.address)
    graph = StateGraph(dict).add_node("n", lambda state: {}).add_edge(START, "n").compile(saver, name="unknown")
    threads = server_at(server.address).stubs.threads
    called: dict[str, list[str]] = {}
    for name in ("BulkUpdateState", "CopyThread", "CreateThread"):
        monkeypatch.setattr(threads, name, lost(1, getattr(threads, name), called.setdefault(name, [])))
    config = {"configurable": {"thread_id": "writes"}}
    graph.update_state(config, {"x": 1}, as_node="n")
    saver.copy_thread("writes", "copy")
    assert len(list(graph.get_state_history(config))) == 1
    for name, ids in called.items():
        assert ids[0] and ids[0] == ids[1], name
    graph.detach()


def test_a_busy_server_is_left_alone_for_as_long_as_it_says() -> None:
    busy = GraphdError("busy", reason="TOO_MANY_RUNS", code="RESOURCE_EXHAUSTED", retry_delay=1.0)
    assert backoff.Backoff().next_pause(busy) == 1.0
    away = GraphdError("away", reason="STORE_UNAVAILABLE", code="UNAVAILABLE", retry_delay=1.0)
    assert backoff.Backoff().next_pause(away) < 1.0
