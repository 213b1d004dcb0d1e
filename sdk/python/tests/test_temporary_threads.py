"""A run without a thread of the caller leaves no thread behind."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graphd import START, Security, StateGraph
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.temporary_threads import ThreadDeletions, delete_now, find_deletions
from graphd.dev import DevServer
from graphd.errors import GraphdError, NotFoundError
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
        delete: Callable[..., Awaitable[Any]] = stubs.threads.DeleteThread

        def observe(request: Any, **options: Any) -> Any:
            deleting.set()
            return delete(request, **options)

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

        async def observe_one(request: Any, **options: Any) -> Any:
            calls.append(1)
            await asyncio.sleep(0.2)
            return await one(request, **options)

        async def observe_several(request: Any, **options: Any) -> Any:
            calls.append(len(request.thread_ids))
            return await several(request, **options)

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

        async def refuse(request: Any, **options: Any) -> Any:
            raise GraphdError("unknown method", code="UNIMPLEMENTED")

        monkeypatch.setattr(stubs.threads, "DeleteThreads", refuse)
        await asyncio.gather(*(graph.ainvoke({"log": []}) for _ in range(10)))
        assert await asyncio.to_thread(list_threads, server, "deleted-singly") == []

    asyncio.run(call())


USER = contextvars.ContextVar("USER", default="nobody")


class FakeThreads:
    """Deletes threads as a server does: one that is named "held…" waits, and those of ``problems`` fail their call."""

    def __init__(self, problems: dict[str, Exception] | None = None) -> None:
        self.problems = problems or {}
        self.failures: dict[str, str] = {}
        self.calls: list[list[str]] = []
        self.users: list[str] = []
        self.timeouts: list[float | None] = []
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def DeleteThread(self, request: ts.DeleteThreadRequest, timeout: float | None = None) -> None:
        await self._delete([request.thread_id], timeout)

    async def DeleteThreads(
        self, request: ts.DeleteThreadsRequest, timeout: float | None = None
    ) -> ts.DeleteThreadsResponse:
        await self._delete(list(request.thread_ids), timeout)
        answer = ts.DeleteThreadsResponse()
        for thread in request.thread_ids:
            if reason := self.failures.get(thread):
                answer.failures.add(thread_id=thread, reason=reason, message=f"{reason} in words")
        return answer

    async def _delete(self, threads: list[str], timeout: float | None) -> None:
        self.calls.append(threads)
        self.users.append(USER.get())
        self.timeouts.append(timeout)
        self.begun.set()
        if any(thread.startswith("held") for thread in threads):
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                await self.released.wait()  # a cancelled call takes a few turns of the loop
                raise
        for thread in threads:
            if thread in self.problems:
                raise self.problems[thread]

    def open(self) -> ThreadDeletions:
        return ThreadDeletions(cast(Any, SimpleNamespace(threads=self)), one_by_one=False)


async def await_ends(*ends: asyncio.Future[None]) -> None:
    """Fails when one does not end; no test waits for so long otherwise."""
    await asyncio.wait_for(asyncio.gather(*ends), 10)


def cancel_others() -> None:
    """Does what asyncio.run does at its end."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def hold_batches(threads: FakeThreads, deletions: ThreadDeletions) -> list[asyncio.Future[None]]:
    """Begins as many deletions as go on at the same time. They don't end until they are released."""
    ends = []
    for n in range(4):
        threads.begun.clear()
        ends.append(deletions.delete_thread(f"held-{n}"))
        await asyncio.wait_for(threads.begun.wait(), 10)
    return ends


async def test_deletions_go_on_after_cancelled_ones() -> None:
    threads = FakeThreads()
    deletions = threads.open()
    held = await hold_batches(threads, deletions)
    before = deletions.delete_thread("before")
    cancel_others()
    after = deletions.delete_thread("after")
    threads.released.set()
    await await_ends(*held, before, after)
    assert threads.calls[4:] == [["before", "after"]]


async def test_a_deletion_that_is_cancelled_before_it_begins_ends() -> None:
    threads = FakeThreads()
    end = threads.open().delete_thread("one")
    cancel_others()
    await await_ends(end)
    assert threads.calls == []


async def test_an_ending_loop_begins_no_deletion_that_nobody_waits_for() -> None:
    threads = FakeThreads()
    deletions = threads.open()
    held = await hold_batches(threads, deletions)
    deletions.delete_thread("left").cancel()
    cancel_others()
    threads.released.set()
    await await_ends(*held)
    assert len(threads.calls) == 4
    await await_ends(deletions.delete_thread("next"))
    assert threads.calls[4:] == [["left", "next"]]


@pytest.mark.parametrize("problem", [RuntimeError("no new threads"), GraphdError("full", code="RESOURCE_EXHAUSTED")])
async def test_one_failing_thread_keeps_no_other(problem: Exception, caplog: pytest.LogCaptureFixture) -> None:
    threads = FakeThreads({"bad": problem, "gone": NotFoundError("gone", code="NOT_FOUND")})
    deletions = threads.open()
    held = await hold_batches(threads, deletions)
    names = [f"good-{n}" for n in range(6)]
    ends = [deletions.delete_thread(name) for name in ["bad", "gone", *names]]
    threads.released.set()
    await await_ends(*held, *ends, deletions.delete_thread("later"))
    assert sorted(itertools.chain(*(call for call in threads.calls[4:] if len(call) == 1))) == sorted(
        ["bad", "gone", *names, "later"]
    )
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"the temporary thread bad is not deleted: {problem}"]


async def test_refusals_in_an_answer_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    threads = FakeThreads()
    threads.failures = {"gone": "THREAD_NOT_FOUND", "kept": "ACCESS_DENIED"}
    deletions = threads.open()
    held = await hold_batches(threads, deletions)
    ends = [deletions.delete_thread(name) for name in ("gone", "kept", "good")]
    threads.released.set()
    await await_ends(*held, *ends)
    assert threads.calls[4:] == [["gone", "kept", "good"]]
    assert caplog.messages == ["the temporary thread kept is not deleted: ACCESS_DENIED in words"]


async def test_slow_deletions_hold_up_no_others() -> None:
    threads = FakeThreads()
    deletions = threads.open()
    slow = deletions.delete_thread("held")
    await await_ends(deletions.delete_thread("quick"))
    assert not slow.done()
    threads.released.set()
    await await_ends(slow)


async def test_a_slow_thread_of_a_batch_holds_up_no_others_of_it() -> None:
    threads = FakeThreads()
    names = ["held", *(f"good-{n}" for n in range(6))]
    batch = asyncio.ensure_future(threads.open()._delete_one_by_one(names))
    while len(threads.calls) < len(names):
        await asyncio.sleep(0)
    assert not batch.done()
    threads.released.set()
    await asyncio.wait_for(batch, 10)


async def test_each_deletion_has_a_deadline() -> None:
    threads = FakeThreads({"bad": GraphdError("bad")})
    deletions = threads.open()
    held = await hold_batches(threads, deletions)
    ends = [deletions.delete_thread(name) for name in ("bad", "good")]
    threads.released.set()
    await await_ends(*held, *ends)
    assert len(threads.timeouts) == 4 + 1 + 2
    assert all(timeout is not None and 0 < timeout <= 30 for timeout in threads.timeouts)


def test_a_plain_deletion_has_a_deadline_and_logs_its_failure(caplog: pytest.LogCaptureFixture) -> None:
    timeouts: list[float] = []

    def refuse(request: Any, timeout: float) -> None:
        timeouts.append(timeout)
        raise GraphdError("bad")

    delete_now(cast(Any, SimpleNamespace(stubs=SimpleNamespace(threads=SimpleNamespace(DeleteThread=refuse)))), "one")
    assert timeouts == [30] and caplog.messages == ["the temporary thread one is not deleted: bad"]


@pytest.mark.parametrize(
    ("security", "users"),
    [
        (Security(token=lambda: USER.get()), [f"user-{n}" for n in range(6)]),
        (Security(token="a"), ["nobody"] * 5),
        (Security(), ["nobody"] * 5),
    ],
)
async def test_only_a_token_function_sees_the_variables_of_the_caller(
    security: Security, users: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = FakeThreads()
    server = server_at("127.0.0.1:1", security)
    monkeypatch.setattr(server.astubs.threads, "DeleteThread", threads.DeleteThread)
    monkeypatch.setattr(server.astubs.threads, "DeleteThreads", threads.DeleteThreads)

    async def end_call(n: int) -> None:
        USER.set(f"user-{n}")
        await find_deletions(server).delete_thread(f"thread-{n}")

    await asyncio.wait_for(asyncio.gather(*(end_call(n) for n in range(6))), 10)
    assert threads.users == users
    assert sorted(itertools.chain(*threads.calls)) == [f"thread-{n}" for n in range(6)]
