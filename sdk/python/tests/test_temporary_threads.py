"""A run without a thread of the caller leaves no thread behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graphd import START, StateGraph
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.dev import DevServer
from graphd.errors import GraphdError
from graphd.transport.server import server_at
from tests.test_worker import State


def build(node: Callable[[State], Any], server: DevServer, name: str) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(server=server.address, name=name)


def list_threads(server: DevServer, graph: str) -> list[str]:
    request = ts.ListThreadsRequest(filter=f'graph = "{graph}"')
    listed = server_at(server.address).stubs.threads.ListThreads(request)
    return [thread.thread_id for thread in listed.threads]


async def await_no_threads(server: DevServer, graph: str) -> None:
    while await asyncio.to_thread(list_threads, server, graph):
        await asyncio.sleep(0.01)


def fail(state: State) -> dict[str, Any]:
    raise ZeroDivisionError("failed")


def note(state: State) -> dict[str, Any]:
    return {"log": ["done"]}


@pytest.mark.parametrize("node", [note, fail])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_ended_run_leaves_no_thread(server: DevServer, node: Callable[[State], Any], asynchronous: bool) -> None:
    name = f"leaves-none-{node.__name__}-{asynchronous}"
    graph = build(node, server, name)
    try:
        asyncio.run(graph.ainvoke({"log": []})) if asynchronous else graph.invoke({"log": []})
    except ZeroDivisionError:
        assert node is fail
    assert list_threads(server, name) == []


def test_a_cancelled_caller_leaves_no_thread(server: DevServer) -> None:
    async def call() -> None:
        begun = asyncio.Event()

        async def wait(state: State) -> dict[str, Any]:
            begun.set()
            await asyncio.sleep(600)
            return {"log": ["late"]}

        graph = build(wait, server, "leaves-none-cancelled")
        caller = asyncio.ensure_future(graph.ainvoke({"log": []}))
        await begun.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert list_threads(server, "leaves-none-cancelled") == []

    asyncio.run(call())


def test_a_deletion_goes_on_when_the_caller_is_cancelled(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def call() -> None:
        deleting = asyncio.Event()
        graph = build(note, server, "deletion-goes-on")
        stubs = server_at(server.address).astubs
        delete: Callable[[Any], Awaitable[Any]] = stubs.threads.DeleteThread

        def observe(request: Any) -> Any:
            deleting.set()
            return delete(request)

        monkeypatch.setattr(stubs.threads, "DeleteThread", observe)
        caller = asyncio.ensure_future(graph.ainvoke({"log": []}))
        await deleting.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.wait_for(await_no_threads(server, "deletion-goes-on"), 60)

    asyncio.run(call())


def test_threads_that_end_together_are_deleted_together(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def call() -> None:
        graph = build(note, server, "deleted-together")
        stubs = server_at(server.address).astubs
        calls: list[int] = []
        one, several = stubs.threads.DeleteThread, stubs.threads.DeleteThreads

        async def observe_one(request: Any) -> Any:
            calls.append(1)
            await asyncio.sleep(0.2)
            return await one(request)

        async def observe_several(request: Any) -> Any:
            calls.append(len(request.thread_ids))
            return await several(request)

        monkeypatch.setattr(stubs.threads, "DeleteThread", observe_one)
        monkeypatch.setattr(stubs.threads, "DeleteThreads", observe_several)
        await asyncio.gather(*(graph.ainvoke({"log": []}) for _ in range(30)))
        assert sum(calls) == 30 and len(calls) < 30
        assert await asyncio.to_thread(list_threads, server, "deleted-together") == []

    asyncio.run(call())


def test_a_server_without_that_call_deletes_one_by_one(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def call() -> None:
        graph = build(note, server, "deleted-singly")
        stubs = server_at(server.address).astubs

        async def refuse(request: Any) -> Any:
            raise GraphdError("unknown method", code="UNIMPLEMENTED")

        monkeypatch.setattr(stubs.threads, "DeleteThreads", refuse)
        await asyncio.gather(*(graph.ainvoke({"log": []}) for _ in range(10)))
        assert await asyncio.to_thread(list_threads, server, "deleted-singly") == []

    asyncio.run(call())
