"""A call without an input waits for the run that is active, and leaves it as it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphd
from graphd import START, InMemorySaver, StateGraph
from graphd.client import resumable_stream, run_call
from graphd.dev import DevServer, dev
from graphd.errors import EmptyInputError, ThreadBusyError
from graphd.remote import RunOptions
from graphd.runtime import Runtime
from graphd.runtime.local_runs import LocalRun, find_call, register_call
from graphd.security import Target
from graphd.types import Command, interrupt
from tests.test_worker import State


class SlowGraph:
    """A graph that asks, and whose next node works until it may end."""

    def __init__(self, server: DevServer, name: str) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

        def ask(state: State) -> dict[str, Any]:
            return {"log": [interrupt("go?")]}

        def work(state: State) -> dict[str, Any]:
            self.begun.set()
            assert self.may_end.wait(60)
            return {"log": ["worked"]}

        builder = StateGraph(State).add_node("ask", ask).add_node("work", work)
        builder.add_edge(START, "ask").add_edge("ask", "work")
        self.graph = builder.compile(InMemorySaver(server=server.address), name=name)
        self.config: Any = {"configurable": {"thread_id": name}}
        self.end: Any = None
        self.graph.invoke({"log": []}, self.config)
        self.first = threading.Thread(target=self._answer)
        self.first.start()
        assert self.begun.wait(60)

    def _answer(self) -> None:
        self.end = self.graph.invoke(Command(resume="yes"), self.config)

    def finish(self) -> Any:
        self.may_end.set()
        self.first.join(60)
        return self.end


END = {"log": ["yes", "worked"]}


@pytest.mark.parametrize("way", ["invoke", "values", "updates"])
def test_a_call_without_an_input_joins_the_active_run(
    server: DevServer, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowGraph(server, f"joined-{way}")
    seen: list[Any] = []
    follows = threading.Event()

    def read_events(*args: Any, **named: Any) -> Iterator[Any]:
        for event in resumable_stream.read_events(*args, **named):
            if event.HasField("opened"):
                follows.set()
            yield event

    monkeypatch.setattr(run_call, "read_events", read_events)

    def join() -> None:
        if way == "invoke":
            seen.append(slow.graph.invoke(None, slow.config))
        else:
            seen.extend(slow.graph.stream(None, slow.config, stream_mode=way))

    joining = threading.Thread(target=join)
    joining.start()
    with pytest.raises(ThreadBusyError, match=r"invoke\(None"):
        slow.graph.invoke({"log": []}, slow.config)
    with pytest.raises(ThreadBusyError):
        slow.graph.invoke(None, slow.config, interrupt_after=["work"])
    assert follows.wait(60)
    assert slow.finish() == END
    joining.join(60)
    assert seen[-1] == ({"work": {"log": ["worked"]}} if way == "updates" else END)
    assert slow.graph.invoke(None, slow.config) == END  # nothing is left to do


async def test_who_joins_a_run_and_leaves_does_not_stop_it(server: DevServer) -> None:
    slow = await asyncio.to_thread(SlowGraph, server, "joined-and-left")
    graph, config = slow.graph, slow.config
    for delay in (0.0, 0.01, 0.1):
        items = aiter(graph.astream(None, config))
        calls = [asyncio.ensure_future(call) for call in (graph.ainvoke(None, config), anext(items))]
        await asyncio.sleep(delay)
        for call in calls:
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    assert await asyncio.to_thread(slow.finish) == END


PROGRAM = """
import os, signal, sys
from typing import TypedDict
from graphd import START, StateGraph

class State(TypedDict, total=False):
    done: str

def work(state):
    if sys.argv[2] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"done": sys.argv[2]}

graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile(server=sys.argv[1], name="dies")
config = {"configurable": {"thread_id": "dies"}}
print(graph.invoke({} if sys.argv[2] == "dies" else None, config))
"""


def test_a_program_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with dev(flags=["--worker-beat", "100ms", "--worker-lease", "1s"]) as server:

        def run(how: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, str(program), server.address, how]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

        assert run("dies").returncode == -9
        ended = run("goes on")
        assert (ended.returncode, ended.stdout) == (0, "{'done': 'goes on'}\n"), ended.stderr


class RemotelyBegunGraph:
    """A graph whose run a client has begun, and whose second node is a coroutine that works until it may end."""

    def __init__(self, server: DevServer, name: str) -> None:
        self.begun, self.may_begin, self.waits, self.may_end = (threading.Event() for _ in range(4))
        self.seen: dict[str, Any] = {}

        def first(state: State) -> dict[str, Any]:
            self.begun.set()
            assert self.may_begin.wait(60)
            return {"log": ["first"]}

        async def second(state: State, config: Any, runtime: Runtime[Any]) -> dict[str, Any]:
            self.seen = {"user": config["configurable"].get("user"), "tags": config["tags"], "context": runtime.context}
            self.waits.set()
            while not self.may_end.is_set():
                await asyncio.sleep(0.01)
            return {"log": ["second"]}

        builder = StateGraph(State).add_node("first", first).add_node("second", second)
        builder.add_edge(START, "first").add_edge("first", "second")
        self.graph = builder.compile(server=server.address, name=name)
        self.config: Any = {"configurable": {"thread_id": name, "user": "joined"}, "tags": ["joined"]}
        with pytest.raises(EmptyInputError):  # the server has the graph
            self.graph.invoke(None, {"configurable": {"thread_id": f"{name}-other"}})
        self.client = graphd.Client(server.address)
        options = RunOptions(context={"who": "client"})
        self.run = self.client.runs.start(name, {"log": []}, thread_id=name, options=options)
        assert self.begun.wait(60)


def test_a_joined_call_that_is_cancelled_leaves_the_coroutines_of_the_run(
    server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = RemotelyBegunGraph(server, "joined-and-cancelled")
    follows = threading.Event()

    async def read_events(*args: Any, **named: Any) -> AsyncIterator[Any]:
        async for event in resumable_stream.aread_events(*args, **named):
            if event.HasField("opened"):
                follows.set()
            yield event

    monkeypatch.setattr(run_call, "aread_events", read_events)

    async def join_and_leave() -> None:
        joined = asyncio.ensure_future(slow.graph.ainvoke(None, slow.config, context={"who": "joined"}))
        assert await asyncio.to_thread(follows.wait, 60)
        slow.may_begin.set()
        assert await asyncio.to_thread(slow.waits.wait, 60)
        joined.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joined

    asyncio.run(join_and_leave())
    slow.may_end.set()
    assert slow.client.runs.wait(slow.run.thread_id, slow.run.run_id, timeout=60).output == {"log": ["first", "second"]}
    assert slow.seen == {"user": None, "tags": [], "context": {"who": "client"}}


def test_calls_that_are_alike_are_told_apart() -> None:
    server = Target("127.0.0.1:1")
    first, second = LocalRun({}), LocalRun({})
    with register_call(server, "t", first):
        with register_call(server, "t", second):
            assert find_call(server, "t", "run") is second
        assert find_call(server, "t", "run") is first
        first.run_id = "run"
    assert find_call(server, "t", "run") is None
