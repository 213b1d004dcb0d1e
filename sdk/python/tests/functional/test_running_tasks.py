"""How tasks run: side by side, cut off, and what is refused."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from typing import Any

import pytest

from graphd import memo
from graphd.checkpoint.memory import InMemorySaver
from graphd.config import get_stream_writer
from graphd.dev import DevServer
from graphd.errors import GraphdError, InvalidUpdateError, NodeTimeoutError
from graphd.func import entrypoint, task
from graphd.func.timeout import find_time_left
from graphd.runtime import get_runtime
from graphd.runtime.task import required_task
from graphd.types import Command, RetryPolicy, TimeoutPolicy, interrupt
from graphd.worker.attempt import Attempt


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def kept(server: DevServer) -> InMemorySaver:
    return InMemorySaver(server=server.address)


def test_items_of_a_task_are_not_muted_by_what_another_one_repeats(server: DevServer) -> None:
    @task
    def ask(x: int) -> Any:
        get_stream_writer()(f"asks {x}")
        return interrupt(x)

    @task
    def tell(x: int) -> int:
        get_stream_writer()(f"tells {x}")
        return x

    @entrypoint(kept(server), name="func-muted")
    def flow(x: int) -> Any:
        first = ask(1).result()
        return [first, tell(2).result(), ask(3).result()]

    at = config("func-muted-1")
    assert list(flow.stream(1, at, stream_mode="custom")) == ["asks 1"]
    assert list(flow.stream(Command(resume="a"), at, stream_mode="custom")) == ["tells 2", "asks 3"]
    assert list(flow.stream(Command(resume="b"), at, stream_mode="custom")) == []


async def test_a_silent_task_ends(server: DevServer) -> None:
    waiting = asyncio.Event()

    @task(timeout=TimeoutPolicy(idle_timeout=0.05))
    async def silent(x: int) -> None:
        await waiting.wait()

    @entrypoint(kept(server), name="func-silent")
    async def flow(x: int) -> Any:
        try:
            await silent(x)
        except NodeTimeoutError as error:
            return [error.node, error.kind, error.idle_timeout]

    assert await flow.ainvoke(1, config("func-silent-1")) == ["silent", "idle", 0.05]


async def test_what_puts_off_the_idle_timeout_of_a_task(server: DevServer) -> None:
    @task
    async def inner(x: int) -> int:
        return x

    @task(timeout=TimeoutPolicy(idle_timeout=60))
    async def busy(x: int) -> list[str]:
        found = []
        for name, act in {
            "heartbeat": get_runtime().heartbeat,
            "writer": lambda: get_stream_writer()("item"),
            "memo": lambda: memo("key", lambda: 1),
            "task": lambda: inner(x),
            "nothing": lambda: None,
        }.items():
            at_hand = required_task("a test")
            at_hand.progressed = 0
            act()
            found += [name] if at_hand.progressed > 0 else []
        return found

    @entrypoint(kept(server), name="func-busy")
    async def flow(x: int) -> Any:
        return await busy(x)

    assert await flow.ainvoke(1, config("func-busy-1")) == ["heartbeat", "writer", "memo", "task"]


def test_the_time_that_a_task_has_left() -> None:
    both = TimeoutPolicy(run_timeout=timedelta(seconds=10), idle_timeout=4)
    assert find_time_left(both, "t", begun=100, progressed=100, now=101) == 3
    assert find_time_left(both, "t", begun=100, progressed=108, now=109) == 1
    assert find_time_left(TimeoutPolicy(idle_timeout=4), "t", begun=100, progressed=200, now=201) == 3
    for progressed, now, kind in ((100, 104, "idle"), (109, 110, "run")):
        with pytest.raises(NodeTimeoutError) as raised:
            find_time_left(both, "t", begun=100, progressed=progressed, now=now)
        assert (raised.value.kind, raised.value.elapsed) == (kind, now - 100)


async def test_a_failure_ends_async_tasks_that_run(server: DevServer) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @task
    async def endless(x: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @entrypoint(kept(server), name="func-cancelled")
    async def flow(x: int) -> None:
        endless(x)
        await begun.wait()
        raise ZeroDivisionError("over")

    with pytest.raises(ZeroDivisionError):
        await flow.ainvoke(1, config("func-cancelled-1"))
    assert ended.is_set()


def test_more_tasks_than_threads(server: DevServer) -> None:
    @task
    def inner(x: int) -> int:
        return x

    @task
    def outer(x: int) -> int:
        return inner(x).result()

    @entrypoint(kept(server), name="func-many")
    def flow(most: int) -> int:
        return sum(f.result() for f in [outer(n) for n in range(most)])

    assert flow.invoke(100, config("func-many-1") | {"max_concurrency": 2}) == sum(range(100))


def test_methods_and_objects_can_be_tasks(server: DevServer) -> None:
    class Shop:
        def __init__(self, price: int) -> None:
            self.price = price

        @task
        def charge(self, amount: int) -> int:
            return self.price * amount

        def __call__(self, amount: int) -> int:
            return self.price + amount

    shop = Shop(3)
    add, named = task(shop), task(shop.__call__, name="named")

    @entrypoint(kept(server), name="func-methods")
    def flow(x: int) -> Any:
        return [shop.charge(x).result(), add(x).result(), named(x).result()]

    shown = list(flow.stream(2, config("func-methods-1")))
    assert shown == [{"charge": 6}, {"Shop": 5}, {"named": 5}, {"flow": [6, 5, 5]}]


def test_a_command_can_not_update_an_entrypoint(server: DevServer) -> None:
    @entrypoint(kept(server), name="func-command")
    def flow(x: int) -> int:
        return x

    with pytest.raises(InvalidUpdateError, match="an entrypoint has no state"):
        flow.invoke(Command(update={"x": 1}), config("func-command-1"))


@pytest.mark.parametrize("call", [task, entrypoint])
def test_unknown_arguments_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match="unknown arguments: cach"):
        call(cach=1)


def test_a_timeout_needs_an_async_entrypoint() -> None:
    with pytest.raises(ValueError, match="entrypoint 'flow' has a timeout"):

        @entrypoint(timeout=1)
        def flow(x: int) -> int:
            return x


async def test_failures_that_nobody_looks_at_are_not_logged(
    server: DevServer, caplog: pytest.LogCaptureFixture
) -> None:
    @task
    def plain(x: int) -> None:
        raise ZeroDivisionError("plain")

    @task
    async def later(x: int) -> None:
        raise ZeroDivisionError("later")

    @entrypoint(kept(server), name="func-unseen")
    async def flow(x: int) -> str:
        plain(x)
        later(x)
        return "done"

    assert await flow.ainvoke(1, config("func-unseen-1")) == "done"
    gc.collect()
    assert [r.getMessage() for r in caplog.records if r.name == "asyncio"] == []


@pytest.mark.parametrize("is_async", [False, True])
def test_a_task_is_not_tried_again_where_it_is_lost(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    tried: list[int] = []

    def confirm(attempt: Attempt) -> None:
        if tried:
            raise GraphdError("the task was given to another worker")

    async def aconfirm(attempt: Attempt) -> None:
        confirm(attempt)

    monkeypatch.setattr(Attempt, "confirm_lease", confirm)
    monkeypatch.setattr(Attempt, "aconfirm_lease", aconfirm)

    def fail(x: int) -> None:
        tried.append(x)
        raise ConnectionError("once")

    async def afail(x: int) -> None:
        fail(x)

    pay = task(afail if is_async else fail, name="pay", retry_policy=RetryPolicy(initial_interval=0.01, max_attempts=3))  # type: ignore[call-overload]

    @entrypoint(kept(server), name=f"func-lost-{is_async}")
    async def flow(x: int) -> Any:
        return await pay(x)

    with pytest.raises(GraphdError, match="another worker"):
        asyncio.run(flow.ainvoke(1, config(f"func-lost-{is_async}")))
    assert tried == [1]
