"""The end of the tasks that a node has called."""

from __future__ import annotations

import asyncio

import pytest

from graphd.runtime.running_calls import RunningCalls


async def test_calls_end_with_a_node_that_is_stopped_while_it_waits_for_them() -> None:
    calls, seen = RunningCalls(), list[str]()

    async def call() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            seen.append("the call ends")

    async def node() -> None:
        async with calls:
            calls.add_future(asyncio.ensure_future(call()))
        seen.append("the node goes on")

    running = asyncio.ensure_future(node())
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["the call ends"]


async def test_a_second_cancellation_waits_for_nothing() -> None:
    calls, go_on = RunningCalls(), asyncio.Event()

    async def call() -> None:
        try:
            await go_on.wait()
        finally:
            await go_on.wait()

    async def node() -> None:
        async with calls:
            calls.add_future(asyncio.ensure_future(call()))

    running = asyncio.ensure_future(node())
    for _ in range(3):
        for _ in range(5):
            await asyncio.sleep(0)
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(running), 60)
    go_on.set()


async def test_a_call_that_stops_an_iteration_ends_for_a_loop() -> None:
    calls = RunningCalls()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(asyncio.wrap_future(calls.submit_call(lambda: next(iter(())), None)), 30)
    await asyncio.wait_for(calls.await_all(cancel=False), 30)
