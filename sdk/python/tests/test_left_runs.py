"""A caller who leaves stops the run that it has begun, and no other one."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from graphd import START, InMemorySaver, StateGraph
from graphd._gen.v1 import thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.dev import DevServer, dev
from graphd.errors import GraphdError
from graphd.transport.server import server_at
from graphd.types import Command, interrupt
from tests.test_worker import State


def build(node: Any, server: DevServer, name: str) -> Any:
    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def states_of(server: DevServer) -> set[int]:
    listed = server_at(server.address).stubs.threads.ListThreads(ts.ListThreadsRequest(page_size=500))
    return {thread.state for thread in listed.threads}


@pytest.mark.parametrize("stored", [False, True])
async def test_a_run_whose_caller_leaves_while_it_is_stored_does_not_begin_later(tmp_path: Path, stored: bool) -> None:
    async def node(state: State) -> dict[str, Any]:
        await asyncio.sleep(600)
        return {"log": []}

    with dev(store=f"sqlite:{tmp_path / 'graphd.db'}") as server:
        graph = build(node, server, "left-early")
        if not stored:
            builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
            graph = builder.compile(server=server.address, name="left-early")
        graph.connect()
        for round in range(4):
            configs = [{"configurable": {"thread_id": f"{round}-{n}"}} if stored else {} for n in range(20)]
            calls = [asyncio.ensure_future(graph.ainvoke({"log": []}, config)) for config in configs]
            for call in calls:
                await asyncio.sleep(0.0005 * round)
                call.cancel()
            await asyncio.wait(calls)
        assert states_of(server) <= ({thread_pb2.THREAD_STATE_IDLE} if stored else set())
        graph.detach()


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_who_is_refused_and_leaves_stops_no_run_of_others(server: DevServer, way: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def node(state: State) -> dict[str, Any]:
        begun.set()
        await go_on.wait()
        return {"log": ["done"]}

    graph = build(node, server, f"shared-thread-{way}")
    config = {"configurable": {"thread_id": f"shared-thread-{way}"}}
    first = asyncio.ensure_future(graph.ainvoke({"log": []}, config))
    await asyncio.wait_for(begun.wait(), 60)

    async def second() -> None:
        if way == "ainvoke":
            await graph.ainvoke({"log": []}, config)
        async for _ in graph.astream({"log": []}, config):
            pass

    for delay in (0.0, 0.001, 0.003, 0.01):
        call = asyncio.ensure_future(second())
        await asyncio.sleep(delay)
        call.cancel()
        with pytest.raises((asyncio.CancelledError, GraphdError)):
            await call
    go_on.set()
    assert await asyncio.wait_for(first, 60) == {"log": ["done"]}


async def test_who_answers_and_leaves_stops_the_run_that_goes_on(server: DevServer) -> None:
    async def node(state: State) -> dict[str, Any]:
        answer = interrupt("?")
        await asyncio.sleep(600)
        return {"log": [answer]}

    graph = build(node, server, "answered-and-left")
    for n, delay in enumerate((0.0, 0.001, 0.003, 0.01, 0.1)):
        config = {"configurable": {"thread_id": f"answered-and-left-{n}"}}
        await graph.ainvoke({"log": []}, config)
        call = asyncio.ensure_future(graph.ainvoke(Command(resume="yes"), config))
        await asyncio.sleep(delay)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        state = await asyncio.to_thread(
            server_at(server.address).stubs.threads.GetThread,
            ts.GetThreadRequest(thread_id=config["configurable"]["thread_id"]),
        )
        assert state.state in (thread_pb2.THREAD_STATE_IDLE, thread_pb2.THREAD_STATE_INTERRUPTED)


@pytest.mark.parametrize("way", ["cancelled", "left"])
async def test_who_leaves_keeps_the_questions_and_the_answer(server: DevServer, way: str) -> None:
    begun = asyncio.Event()

    async def slow(state: State) -> dict[str, Any]:
        answer = interrupt("slow?")
        begun.set()
        await asyncio.sleep(0.2 if len(seen) > 1 else 600)
        return {"log": [answer]}

    async def other(state: State) -> dict[str, Any]:
        return {"log": [interrupt("other?")]}

    seen: list[Any] = []
    builder = StateGraph(State).add_node("slow", slow).add_node("other", other).add_edge(START, "slow")
    graph = builder.add_edge(START, "other").compile(InMemorySaver(server=server.address), name=f"keeps-{way}")
    config = {"configurable": {"thread_id": f"keeps-{way}"}}
    asked = {i.value: i.id for i in (await graph.ainvoke({"log": []}, config))["__interrupt__"]}
    resume = Command[Any](resume={asked["slow?"]: "A"})
    if way == "cancelled":
        call = asyncio.ensure_future(graph.ainvoke(resume, config))
        await asyncio.wait_for(begun.wait(), 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    else:
        async with contextlib.aclosing(graph.astream(resume, config, stream_mode="values")) as states:
            async for _ in states:
                break
    seen.extend([1, 2])
    state = await graph.aget_state(config)
    assert {i.value for i in state.interrupts} == {"other?"}
    assert (await graph.ainvoke(Command(resume={asked["other?"]: "B"}), config))["log"] == ["B", "A"]
