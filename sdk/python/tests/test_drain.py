"""A server is told to stop while a program waits for what runs on it."""

from __future__ import annotations

import asyncio
import operator
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from graphd import END, START, InMemorySaver, StateGraph, interrupt
from graphd.client.run_call import RunCall
from graphd.dev import DevServer, dev
from graphd.errors import GraphDrained
from graphd.runtime.info import RunControl, Runtime
from graphd.types import Command


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@contextmanager
def restarted(tmp_path: Path, begun: threading.Event, go_on: threading.Event) -> Iterator[DevServer]:
    """A server that is told to stop when a node has begun, and is there again
    later: what an orchestrator does."""
    store, ends = f"sqlite:{tmp_path / 'graphd.db'}", []
    first = dev(store=store)

    def orchestrate() -> None:
        assert begun.wait(60)
        first.process.send_signal(signal.SIGTERM)
        threading.Timer(0.2, go_on.set).start()
        first.process.wait()
        ends.append(dev(store=store, port=first.port))

    around = threading.Thread(target=orchestrate)
    around.start()
    try:
        yield first
    finally:
        begun.set()
        around.join()
        for server in (*ends, first):
            server.close()
    assert ends, "the server was restarted"


def build(server: DevServer, begun: threading.Event, go_on: threading.Event, ran: list[str]) -> Any:
    def slow(state: State) -> dict[str, Any]:
        ran.append("slow")
        begun.set()
        assert go_on.wait(60)
        return {"log": ["slow"]}

    def after(state: State) -> dict[str, Any]:
        ran.append("after")
        return {"log": ["after", interrupt("go on?")]}

    builder = StateGraph(State).add_node("slow", slow).add_node("after", after)
    builder.add_edge(START, "slow").add_edge("slow", "after").add_edge("after", END)
    return builder.compile(InMemorySaver(server=server.address), name="drained")


@pytest.fixture
def events() -> tuple[threading.Event, threading.Event]:
    return threading.Event(), threading.Event()


def test_a_call_goes_on_when_its_server_is_restarted(
    tmp_path: Path, events: tuple[threading.Event, threading.Event]
) -> None:
    ran: list[str] = []
    with restarted(tmp_path, *events) as server:
        graph = build(server, *events, ran)
        config = {"configurable": {"thread_id": "1"}}
        seen = list(graph.stream({"log": []}, config, stream_mode="updates"))
        assert seen[0] == {"slow": {"log": ["slow"]}}
        assert [list(part) for part in seen] == [["slow"], ["__interrupt__"]]
        assert graph.invoke(Command(resume="yes"), config) == {"log": ["slow", "after", "yes"]}
        assert ran == ["slow", "after", "after"], "nothing ran twice, save the node that asked"
        graph.detach()


async def test_an_async_call_goes_on_when_its_server_is_restarted(
    tmp_path: Path, events: tuple[threading.Event, threading.Event]
) -> None:
    ran: list[str] = []
    with restarted(tmp_path, *events) as server:
        graph = build(server, *events, ran)
        config = {"configurable": {"thread_id": "1"}}
        result = await graph.ainvoke({"log": []}, config)
        assert result["log"] == ["slow"]
        assert [i.value for i in result["__interrupt__"]] == ["go on?"]
        assert ran == ["slow", "after"]
        graph.detach()


@pytest.mark.parametrize("persistence", [None, True])
def test_a_drain_stops_between_the_supersteps_of_a_subgraph(server: DevServer, persistence: bool | None) -> None:
    ran: list[str] = []

    def first(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        ran.append("first")
        if runtime.control is not None:
            runtime.control.request_drain("enough")
        return {"log": ["first"]}

    def second(state: State) -> dict[str, Any]:
        ran.append("second")
        return {"log": ["second"]}

    name = f"drained-inside-{persistence}"
    child = StateGraph(State).add_node("first", first).add_node("second", second).add_edge(START, "first")
    inner = child.add_edge("first", "second").compile(checkpointer=persistence, name=f"{name}-inner")
    outer = StateGraph(State).add_node("sub", inner).add_edge(START, "sub")
    graph = outer.compile(InMemorySaver(server=server.address), name=name)
    config = {"configurable": {"thread_id": name}}
    with pytest.raises(GraphDrained, match="enough"):
        graph.invoke({"log": ["in"]}, config, control=RunControl())
    assert ran == ["first"]
    state = graph.get_state(config)
    assert (state.values, state.next) == ({"log": ["in"]}, ("sub",))
    assert [task.error for task in state.tasks] == [None]
    assert graph.invoke(None, config) == {"log": ["in", "in", "first", "second"]}
    assert ran == ["first", "second"]


def build_pausing(server: DevServer, name: str, **breakpoints: Any) -> Any:
    """A graph whose first node asks for a drain."""

    def drain(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        if runtime.control is not None:
            runtime.control.request_drain("enough")
        return {"log": [interrupt("?")] if state["log"] == ["ask"] else ["a"]}

    builder = StateGraph(State).add_node("a", drain).add_node("b", lambda state: {"log": ["b"]})
    builder.add_edge(START, "a").add_edge("a", "b")
    return builder.compile(InMemorySaver(server=server.address), name=name, **breakpoints)


@pytest.mark.parametrize(
    "breakpoints", [{"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}, {"interrupt_after": "*"}]
)
async def test_a_drain_at_a_breakpoint_is_a_pause(server: DevServer, breakpoints: Any) -> None:
    graph = build_pausing(server, f"pausing-{uuid.uuid4().hex}")
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    assert await graph.ainvoke({"log": ["in"]}, config, control=RunControl(), **breakpoints) == {"log": ["in", "a"]}
    assert graph.get_state(config).next == ("b",)
    assert await graph.ainvoke(None, config) == {"log": ["in", "a", "b"]}


async def test_a_drain_elsewhere_is_told(server: DevServer) -> None:
    graph = build_pausing(server, f"pausing-{uuid.uuid4().hex}")
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    with pytest.raises(GraphDrained, match="enough"):
        await graph.ainvoke({"log": ["in"]}, config, control=RunControl(), interrupt_after=["b"])
    assert await graph.ainvoke(None, config) == {"log": ["in", "a", "b"]}


def test_the_breakpoints_of_an_answer_win_over_a_drain(server: DevServer) -> None:
    graph = build_pausing(server, "pausing-after-answer")
    config = {"configurable": {"thread_id": "pausing-after-answer"}}
    graph.invoke({"log": ["ask"]}, config)
    result = graph.invoke(Command(resume="yes"), config, interrupt_before=["b"], control=RunControl())
    assert result == {"log": ["ask", "yes"]}
    assert graph.invoke(None, config) == {"log": ["ask", "yes", "b"]}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_question_of_a_drained_superstep_is_asked(server: DevServer, is_async: bool) -> None:
    graph = build_pausing(server, f"asking-{is_async}")
    config = {"configurable": {"thread_id": f"asking-{is_async}"}}
    given: Any = {"log": ["ask"]}
    asked = (
        await graph.ainvoke(given, config, control=RunControl())
        if is_async
        else graph.invoke(given, config, control=RunControl())
    )
    assert [question.value for question in asked["__interrupt__"]] == ["?"]
    assert graph.get_state(config).interrupts == tuple(asked["__interrupt__"])
    streamed = [
        part async for part in graph.astream(None, config, control=RunControl()) if not part.get("__metadata__")
    ]
    assert streamed == [{"__interrupt__": tuple(asked["__interrupt__"])}]
    assert graph.invoke(Command(resume="yes"), config) == {"log": ["ask", "yes", "b"]}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_drain_before_the_run_is_known_is_not_lost(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    control, prepare = RunControl(), RunCall.prepare

    def prepare_and_drain(call: RunCall) -> None:
        prepare(call)
        control.request_drain("meanwhile")

    monkeypatch.setattr(RunCall, "prepare", prepare_and_drain)
    monkeypatch.setattr(RunCall, "_needs_preparation", lambda call: True)
    builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).add_node("b", lambda state: {"log": ["b"]})
    builder.add_edge(START, "a").add_edge("a", "b")
    graph = builder.compile(InMemorySaver(server=server.address), name=f"drained-early-{is_async}")
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    with pytest.raises(GraphDrained, match="meanwhile"):
        if is_async:
            async for _ in graph.astream({"log": ["in"]}, config, control=control):
                await asyncio.sleep(0.1)
        else:
            for _ in graph.stream({"log": ["in"]}, config, control=control):
                time.sleep(0.1)  # the reader sets the pace
    monkeypatch.undo()
    assert graph.invoke(None, config) == {"log": ["in", "a", "b"]}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("handled", [False, True])
async def test_a_drain_in_the_last_superstep_stops_nothing(server: DevServer, is_async: bool, handled: bool) -> None:
    def last(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        if runtime.control is not None:
            runtime.control.request_drain("late")
        if handled:
            raise ValueError("handled")
        return {"log": ["last"]}

    handler: Any = {"error_handler": lambda state: {"log": ["last"]}} if handled else {}
    builder = StateGraph(State).add_node("last", last, **handler).add_edge(START, "last")
    graph = builder.compile(InMemorySaver(server=server.address), name=f"drained-late-{is_async}-{handled}")
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    given: Any = {"log": ["in"]}
    result = (
        await graph.ainvoke(given, config, control=RunControl())
        if is_async
        else graph.invoke(given, config, control=RunControl())
    )
    assert result == {"log": ["in", "last"]}
    assert list(graph.stream(given, config, control=RunControl())) == [
        {"__error_handler__last" if handled else "last": {"log": ["last"]}}
    ]


def test_a_failure_wins_over_a_drain(server: DevServer) -> None:
    def fail(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        if runtime.control is not None:
            runtime.control.request_drain("late")
        raise LookupError("boom")

    builder = StateGraph(State).add_node("fail", fail).add_node("after", lambda state: {}).add_edge(START, "fail")
    graph = builder.add_edge("fail", "after").compile(InMemorySaver(server=server.address), name="drained-failure")
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    with pytest.raises(LookupError, match="boom"):
        graph.invoke({"log": ["in"]}, config, control=RunControl())
    assert graph.get_state(config).next == ("fail",)
