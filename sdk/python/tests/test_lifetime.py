"""How long a process works for a server."""

from __future__ import annotations

import concurrent.futures
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.compiled.sessions import attach_program
from graphd.dev import DevServer
from graphd.errors import ServerUnavailableError
from graphd.graph import START, StateGraph
from tests.test_worker import wait_until


class State(TypedDict, total=False):
    said: str


def builder(text: str) -> StateGraph:
    def speak(state: State) -> dict[str, Any]:
        return {"said": text}

    return StateGraph(State).add_node("speak", speak).add_edge(START, "speak")


def until(condition: Callable[[], bool]) -> None:
    """Waits for what collecting brings about: a thread that is about to end may have held on at first."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
        gc.collect()


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def session_of(graph: Any) -> Any:
    return graph.attach().session


def test_who_compiles_for_a_server_need_not_hold_the_graph(server: DevServer) -> None:
    session = session_of(builder("still here").compile(server=server.address, name="unheld"))
    gc.collect()
    assert not session.closed
    session.close()


def test_a_server_of_the_environment_is_worked_for_too(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    for saver in (None, InMemorySaver()):
        session = session_of(builder("environment").compile(saver, name="unheld-environment"))
        gc.collect()
        assert not session.closed
    session.close()


def test_the_next_graph_of_a_name_takes_over(server: DevServer) -> None:
    older = session_of(builder("older").compile(server=server.address))
    gc.collect()
    newer = builder("newer").compile(server=server.address)
    assert newer.program.name in older.programs
    until(lambda: older.closed)
    assert newer.invoke({}, config("lifetime-1")) == {"said": "newer"}
    newer.detach()


def test_a_held_graph_of_the_same_name_goes_on(server: DevServer) -> None:
    first = builder("first").compile(server=server.address, name="held")
    second = first.builder.compile(server=server.address, name="held")
    assert not session_of(first).closed
    first.detach()
    second.detach()


def test_a_graph_on_a_saver_ends_with_its_last_reference(server: DevServer) -> None:
    graph = builder("saver").compile(InMemorySaver(server=server.address), name="saved")
    session, bound = session_of(graph), graph.with_config({"tags": ["bound"]})
    del graph
    gc.collect()
    assert not session.closed
    assert bound.invoke({}, config("lifetime-2")) == {"said": "saver"}
    del bound
    gc.collect()
    until(lambda: session.closed)  # another thread may have collected it just now


def test_graphs_that_are_gone_get_no_task_of_the_next_one(server: DevServer) -> None:
    def compile_graph(text: str) -> Any:
        return builder(text).compile(InMemorySaver(server=server.address), name="next")

    for number in range(3):
        graphs = [compile_graph("gone") for _ in range(20)]
        for graph in graphs:
            graph.attach()
        del graph
        graphs.clear()
        assert compile_graph("next").invoke({}, config(f"next-{number}")) == {"said": "next"}


def test_collecting_a_graph_waits_for_no_lock(server: DevServer) -> None:
    """The collector runs in the middle of anything, say of a pool that takes work."""
    graph = builder("collected").compile(InMemorySaver(server=server.address), name="collected")
    session = session_of(graph)
    with session._runner._pool._shutdown_lock:
        collected = threading.Event()

        def collect(graph: list[Any]) -> None:
            graph.clear()
            gc.collect()
            collected.set()

        held = [graph]
        del graph
        threading.Thread(target=collect, args=(held,), daemon=True).start()
        assert collected.wait(60)
        assert not session.closed
    until(lambda: session.closed)


ENDS = """
import atexit, time, graphd
from graphd import START, StateGraph

with graphd.dev() as server:
    builder = StateGraph(dict).add_node("node", lambda state: {"n": 1}).add_edge(START, "node")
    graph = builder.compile(server=server.address, name="ends")
    print(graph.invoke({}, {"configurable": {"thread_id": "ends"}}))
atexit.register(time.sleep, 1)  # meanwhile the worker looks for the server
"""


def test_a_program_that_outlives_its_server_ends_in_silence() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=120, check=True)
    assert (ended.stdout, ended.stderr) == ("{'n': 1}\n", "")


CANCELS = """
import asyncio, graphd
from graphd import START, StateGraph

async def main():
    begun = asyncio.Event()

    async def node(state):
        begun.set()
        await asyncio.sleep(1000)

    server = graphd.dev()
    graph = StateGraph(dict).add_node("node", node).add_edge(START, "node").compile(server=server.address, name="cancels")
    graph.attach().session._beat = 1000.0
    call = asyncio.create_task(graph.ainvoke({}, {"configurable": {"thread_id": "cancels"}}))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    print(call.cancelled())

asyncio.run(main())
"""


def test_a_cancelled_call_does_not_keep_the_process() -> None:
    """The result of its node is refused; the next beat would say why, and the lease ends after half a minute."""
    ended = subprocess.run([sys.executable, "-c", CANCELS], capture_output=True, text=True, timeout=25, check=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_calls_side_by_side_look_for_their_server_together(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, all_wait, problem = list[Any](), threading.Event(), ServerUnavailableError("no server is there")

    def look(*args: Any, **named: Any) -> Any:
        looked.append(args)
        assert all_wait.wait(60)
        raise problem

    monkeypatch.setattr("graphd.compiled.attached_graph.attach_program", look)
    graph = builder("hi").compile(InMemorySaver(server="localhost:1"), name="looks-for-its-server")
    begin, begun = graph._attachments.begin, list[Any]()

    def note_begin(target: Any, call: Any) -> Any:
        begun.append(begin(target, call))
        return begun[-1]

    monkeypatch.setattr(graph._attachments, "begin", note_begin)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(graph.connect) for _ in range(4)]
        wait_until(lambda: len(begun) == len(calls))
        graph.detach()  # waits for no call
        all_wait.set()
        assert [call.exception(60) for call in calls] == [problem] * 4
    assert len(looked) == 1


def test_a_graph_that_is_detached_while_it_attaches_attaches_as_it_is_then(
    server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = builder("hi").compile(InMemorySaver(server=server.address), name="detached-meanwhile")
    timeouts = list[Any]()

    def attach(program: Any, *args: Any, **named: Any) -> Any:
        made = attach_program(program, *args, **named)
        timeouts.append(program.step_timeout)
        if len(timeouts) == 1:
            graph.step_timeout = 7.0  # detaches
        return made

    monkeypatch.setattr("graphd.compiled.attached_graph.attach_program", attach)
    graph.connect()
    assert timeouts == [None, 7.0]
    assert graph.is_attached
    graph.detach()
    assert not graph.is_attached
