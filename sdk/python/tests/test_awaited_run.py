"""A call of which only the end shows starts its run and waits for its stop in one call."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from graphd import END, START, InMemorySaver, StateGraph
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.client import awaited_run
from graphd.client.resumable_stream import ResumableStream
from graphd.dev import DevServer, dev
from graphd.errors import GraphdError
from graphd.transport.backoff import UNOPENED
from graphd.transport.errors import EmptyInput
from graphd.transport.server import Server, call_unary, server_at
from tests.relay import Relay
from tests.test_worker import State


def build(node: Callable[[State], Any], server: DevServer, name: str) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(server=server.address, name=name)


def request_of(graph: str) -> gs.StreamRequest:
    request = gs.StreamRequest(request_id=f"request-{graph}")
    request.run.graph, request.run.thread_id, request.run.create_thread = graph, graph, True
    request.run.input.json = '{"log":[]}'
    return request


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_that_takes_longer_than_the_wait_is_followed(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    monkeypatch.setattr(awaited_run, "_WAIT", 1)

    def node(state: State) -> dict[str, Any]:
        time.sleep(1.2)
        return {"log": ["done"]}

    graph = build(node, server, f"longer-{asynchronous}")
    ended = asyncio.run(graph.ainvoke({"log": ["in"]})) if asynchronous else graph.invoke({"log": ["in"]})
    assert ended == {"log": ["in", "done"]}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_failure_after_the_wait_is_raised(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    monkeypatch.setattr(awaited_run, "_WAIT", 1)

    def node(state: State) -> dict[str, Any]:
        time.sleep(1.2)
        raise ZeroDivisionError("late")

    graph = build(node, server, f"late-{asynchronous}")
    with pytest.raises(ZeroDivisionError, match="late"):
        asyncio.run(graph.ainvoke({"log": []})) if asynchronous else graph.invoke({"log": []})


def test_a_call_whose_answer_is_lost_is_the_same_run(server: DevServer) -> None:
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def node(state: State) -> dict[str, Any]:
        calls.append("called")
        begun.set()
        assert go_on.wait(60)
        return {"log": ["done"]}

    graph = build(node, server, "lost-answer")
    runs: list[run_pb2.Run] = []
    with Relay(server.port) as relay:
        caller = server_at(relay.address)
        request = request_of("lost-answer")
        waiting = threading.Thread(target=lambda: runs.append(awaited_run.start_and_wait(caller, request)), daemon=True)
        waiting.start()
        assert begun.wait(60)
        relay.cut()
        go_on.set()
        waiting.join(60)
    assert [run.output.json for run in runs] == ['{"log":["done"]}']
    assert calls == ["called"]
    graph.detach()


def test_the_caller_is_cancelled_while_it_waits(server: DevServer) -> None:
    begun = threading.Event()

    async def node(state: State) -> dict[str, Any]:
        begun.set()
        await asyncio.sleep(600)
        return {"log": []}

    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="cancelled-wait")

    async def leave() -> None:
        call = asyncio.ensure_future(graph.ainvoke({"log": []}, {"configurable": {"thread_id": "cancelled-wait"}}))
        await asyncio.to_thread(begun.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(leave())
    ended = call_unary(server_at(server.address).stubs.graphs.WaitRun, gs.WaitRunRequest(thread_id="cancelled-wait"))
    assert ended.state == run_pb2.RUN_STATE_CANCELLED


class Refusing(Server):
    """A server that refuses every call."""

    def __init__(self, error: GraphdError) -> None:
        self.error, self.asked = error, 0

    @property
    def stubs(self) -> Any:
        self.asked += 1
        raise self.error


def test_a_refusal_is_not_repeated() -> None:
    refusing = Refusing(EmptyInput("no input", reason="INVALID_FIELD", code="INVALID_ARGUMENT"))
    with pytest.raises(EmptyInput):
        awaited_run.start_and_wait(refusing, request_of("refused"))
    assert refusing.asked == 1


class Clock:
    """Time that passes while calls wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


def test_a_call_that_no_server_gets_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, start = Clock(monkeypatch), awaited_run._AwaitedStart(request_of("away"))
    with pytest.raises(GraphdError, match="refused"):
        while True:
            start.next_request()
            clock.now += start.next_pause(GraphdError("refused", code="UNAVAILABLE"))
    assert clock.now <= 1 + UNOPENED


def test_a_server_that_was_there_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, start = Clock(monkeypatch), awaited_run._AwaitedStart(request_of("restarted"))
    start.next_request()
    clock.now += 2.0  # it breaks
    while clock.now < 25:
        clock.now += start.next_pause(GraphdError("refused", code="UNAVAILABLE"))
        start.next_request()


def test_the_rest_of_a_run_is_followed_over_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rest = Clock(monkeypatch), gs.WatchRequest(thread_id="t", run_id="r", follow=True)
    stream = ResumableStream(rest, served=True)
    while clock.now < 25:
        clock.now += stream.next_pause(GraphdError("refused", code="UNAVAILABLE"))


def test_a_run_that_has_lost_the_beginning_of_its_log_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited_run, "_WAIT", 1)
    with dev(flags=["--events", "1000"]) as server:
        ends = time.monotonic() + 3

        def node(state: State) -> dict[str, Any]:
            return {"log": ["x"]}

        def goes_on(state: State) -> str:
            return "node" if time.monotonic() < ends else END

        builder = (
            StateGraph(State).add_node("node", node).add_edge(START, "node").add_conditional_edges("node", goes_on)
        )
        graph = builder.compile(InMemorySaver(server=server.address), name="trimmed")
        config = {"recursion_limit": 100_000, "configurable": {"thread_id": "trimmed"}}
        assert graph.invoke({"log": []}, config)["log"]
        graph.detach()
