"""Nodes begin in the pace of the reader of their stream."""

from __future__ import annotations

import _thread
import concurrent.futures
import operator
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

import pytest

from graphd import WorkerLimits
from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import END, START, StateGraph
from graphd.runtime import reader_gate
from graphd.runtime.reader_gate import HeldTask, ReaderGate
from graphd.types import TimeoutPolicy


def wait_for_end(graph: Any, config: Any) -> None:
    """Wait until the thread has no next node, at most a minute."""
    deadline = time.monotonic() + 60
    while graph.get_state(config).next:
        assert time.monotonic() < deadline, "the run has not ended"
        time.sleep(0.01)


def held(task: str, step: int, begun: list[str]) -> HeldTask:
    return HeldTask(task, step, lambda: begun.append(task))


def test_a_superstep_begins_when_its_checkpoint_was_taken() -> None:
    gate, begun = ReaderGate(), list[str]()
    gate.submit(held("a", 1, begun))
    assert begun == []
    gate.release_due(["a"])
    assert begun == ["a"]
    gate.submit(held("handler of a", 1, begun))
    assert begun == ["a", "handler of a"], "it is announced by nothing"
    gate.submit(held("b", 2, begun))
    gate.submit(held("c", 2, begun))
    assert len(begun) == 2
    gate.release_due(["b", "c"])
    assert begun[2:] == ["b", "c"]


def test_the_first_superstep_of_a_run_that_goes_on_is_released_by_itself() -> None:
    gate, begun = ReaderGate(), list[str]()
    gate.submit(held("a", 5, begun))
    gate.release_first()
    gate.submit(held("b", 5, begun))
    gate.submit(held("c", 6, begun))
    assert begun == ["a", "b"]
    late, begun = ReaderGate(), list[str]()
    late.release_first()
    late.submit(held("a", 5, begun))
    assert begun == ["a"]


def test_an_open_gate_and_a_stopped_task_hold_nothing() -> None:
    gate, begun = ReaderGate(), list[str]()
    gate.submit(held("a", 1, begun))
    gate.submit(held("b", 1, begun))
    gate.withdraw("b")
    assert begun == ["b"]
    gate.open()
    gate.submit(held("c", 9, begun))
    assert begun == ["b", "a", "c"]


def test_a_reader_that_waits_in_vain_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(reader_gate.time, "monotonic", lambda: now)
    gate, begun = ReaderGate(), list[str]()
    gate.submit(held("a", 1, begun))
    gate.check_patience()
    gate.mark_waiting()
    now += 0.4
    gate.check_patience()
    gate.mark_reading()
    now += 10
    gate.check_patience()
    assert begun == [], "the reader is at work"
    gate.mark_waiting()
    now += 0.6
    gate.check_patience()
    assert begun == ["a"]


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def build(out: list[str], *, timed: bool = False, plain: bool = True) -> StateGraph:
    builder = StateGraph(State)

    def make(name: str) -> Callable[[State], Any]:
        def node(state: State) -> State:
            out.append(name)
            return {"log": [name]}

        async def coroutine(state: State) -> State:
            return node(state)

        return node if plain else coroutine

    for name in ("one", "two", "three"):
        builder.add_node(name, make(name), **({"timeout": TimeoutPolicy(run_timeout=60)} if timed else {}))
    for edge in [(START, "one"), ("one", "two"), ("two", "three"), ("three", END)]:
        builder.add_edge(*edge)
    return builder


CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("plain", [True, False])
async def test_async_readers_set_the_pace_too(plain: bool) -> None:
    out: list[str] = []
    graph = build(out, plain=plain).compile(checkpointer=InMemorySaver())
    async for chunk in graph.astream({"log": []}, CONFIG):
        out.append(f"reader has {next(iter(chunk))}")
    assert out == ["one", "reader has one", "two", "reader has two", "three", "reader has three"]


async def test_an_async_reader_that_leaves_stops_the_graph() -> None:
    out: list[str] = []
    graph = build(out).compile(checkpointer=InMemorySaver())
    stream = graph.astream({"log": []}, CONFIG)
    async for _ in stream:
        break
    await stream.aclose()
    snapshot = await graph.aget_state(CONFIG)
    assert (out, snapshot.values, snapshot.next) == (["one"], {"log": ["one"]}, ("two",))
    assert (await graph.ainvoke(None, CONFIG))["log"] == out == ["one", "two", "three"]


def test_a_reader_that_leaves_late_stops_no_later_run() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def node(state: Any) -> dict[str, Any]:
        if state["out"] == ["second"]:
            begun.set()
            assert may_end.wait(60)
        return {"out": ["done"]}

    class State(TypedDict):
        out: list[str]

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    stream = graph.stream({"out": ["first"]}, config, stream_mode="updates")
    assert next(stream) == {"node": {"out": ["done"]}}
    wait_for_end(graph, config)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        later = pool.submit(graph.invoke, {"out": ["second"]}, config)
        assert begun.wait(60)
        stream.close()
        may_end.set()
        assert later.result(60) == {"out": ["done"]}


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """A process that began in the background ignores Ctrl-C; within the test it does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_a_plain_call_stops_the_run_and_a_call_goes_on() -> None:
    begun, left, ran = threading.Event(), threading.Event(), list[str]()

    def interrupted(state: State) -> State:
        ran.append("first")
        if not begun.is_set():
            begun.set()
            assert left.wait(60)
        return {"log": ["first"]}

    def second(state: State) -> State:
        ran.append("second")
        return {"log": ["second"]}

    builder = StateGraph(State).add_node("first", interrupted).add_node("second", second).add_edge(START, "first")
    graph = builder.add_edge("first", "second").compile(checkpointer=InMemorySaver())

    def press_ctrl_c() -> None:
        assert begun.wait(60)
        time.sleep(0.2)
        _thread.interrupt_main()

    threading.Thread(target=press_ctrl_c, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"log": []}, CONFIG)
    left.set()
    assert ran == ["first"]
    assert graph.invoke(None, CONFIG) == {"log": ["first", "second"]}


def test_a_run_of_a_server_goes_on_when_its_reader_leaves(server: DevServer) -> None:
    out: list[str] = []
    graph = build(out).compile(server=server.address, name="left-on-a-server")
    config: Any = {"configurable": {"thread_id": "left-on-a-server"}}
    for _ in graph.stream({"log": []}, config):
        break
    wait_for_end(graph, config)
    assert graph.get_state(config).values == {"log": ["one", "two", "three"]}
    assert out == ["one", "two", "three"]


def test_nodes_with_a_time_limit_wait_for_no_reader() -> None:
    out: list[str] = []
    graph = build(out, timed=True, plain=False).compile(checkpointer=InMemorySaver())
    stream = graph.stream({"log": []}, CONFIG)
    next(stream)
    wait_for_end(graph, CONFIG)
    assert out == ["one", "two", "three"]
    assert [next(iter(chunk)) for chunk in stream] == ["two", "three"]


def test_held_tasks_take_no_threads() -> None:
    out: list[str] = []
    graph = build(out).compile(checkpointer=InMemorySaver(), worker=WorkerLimits(threads=2))
    streams = [graph.stream({"log": []}, {"configurable": {"thread_id": f"t{n}"}}) for n in range(20)]
    assert [next(iter(next(stream))) for stream in streams] == ["one"] * 20
    assert graph.invoke({"log": []}, CONFIG) == {"log": ["one", "two", "three"]}
    assert [[next(iter(chunk)) for chunk in stream] for stream in streams] == [["two", "three"]] * 20
