"""What is tried again by itself."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from graphd import START, InMemorySaver, StateGraph
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.resumable_stream import ResumableStream
from graphd.dev import DevServer
from graphd.errors import GraphdError
from graphd.transport import server as transport
from graphd.transport.backoff import Backoff, is_transient


@pytest.mark.parametrize("reason", ["STORE_BUSY", "STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "TOO_MANY_RUNS"])
def test_a_call_that_may_pass_is_made_again(reason: str) -> None:
    problem = GraphdError("no", reason=reason, code="UNAVAILABLE")
    assert is_transient(problem)
    assert ResumableStream(gs.StreamRequest(request_id="same")).next_pause(problem) > 0


def test_a_full_store_is_told_at_once() -> None:
    problem = GraphdError("no", reason="STORE_FULL", code="RESOURCE_EXHAUSTED")
    with pytest.raises(GraphdError):
        ResumableStream(gs.StreamRequest(request_id="same")).next_pause(problem)


def test_a_call_to_a_full_server_is_logged_when_it_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    full = GraphdError("40 streams", reason="TOO_MANY_SUBSCRIBERS", code="RESOURCE_EXHAUSTED", retry_delay=0.5)
    away = GraphdError("no", reason="STORE_UNAVAILABLE", code="UNAVAILABLE")
    with caplog.at_level(logging.INFO, logger="graphd.client"):
        assert ResumableStream(gs.StreamRequest(request_id="same")).next_pause(full) == 0.5
        ResumableStream(gs.StreamRequest(request_id="same")).next_pause(away)
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "INFO",
            "the server is full (TOO_MANY_SUBSCRIBERS): the call is made again in 0.5 s; "
            "delay that the server asks for: 0.5 s; 40 streams",
        )
    ]


@pytest.mark.parametrize("call", ["get_state", "get_state_history"])
def test_a_state_is_read_again_when_the_server_was_full(
    server: DevServer, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StateGraph(dict).add_node("n", lambda state: {"x": 1}).add_edge(START, "n")
    program = builder.compile(InMemorySaver(server=server.address), name="read-again")
    config = {"configurable": {"thread_id": f"read-again-{call}"}}
    program.invoke({"x": 0}, config)
    unary, calls = transport.call_unary, 0

    def refused_once(method: Any, request: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise GraphdError("full", reason="TOO_MANY_REQUESTS", code="RESOURCE_EXHAUSTED")
        return unary(method, request)

    monkeypatch.setattr(transport, "call_unary", refused_once)
    assert list(getattr(program, call)(config))
    assert calls == 2


@pytest.mark.parametrize("limit", [5.0, 30.0])
def test_the_last_attempt_is_at_the_limit(limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    away, backoff = GraphdError("away", code="UNAVAILABLE"), Backoff()
    with pytest.raises(GraphdError):
        while True:
            now += backoff.next_pause(away, limit)
    assert now == 100.0 + limit
