"""The items of a call whose callback handlers are told when it begins and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator

from graphd._gen.v1 import event_pb2
from graphd.client.items import Item
from graphd.constants import TASK_SEPARATOR
from graphd.runtime.traced_graph import TracedGraph


def trace_items(traced: TracedGraph | None, items: Iterator[Item]) -> Iterator[Item]:
    """Yields the items of a call."""
    return items if traced is None else _trace_items(traced, items)


def _trace_items(traced: TracedGraph, items: Iterator[Item]) -> Iterator[Item]:
    traced.run_steps(traced.start())
    try:
        yield from items
    except BaseException as error:
        traced.run_steps(traced.fail(error))
        raise
    traced.run_steps(traced.finish())


def atrace_items(traced: TracedGraph | None, items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """Like trace_items, on the loop of the caller."""
    return items if traced is None else _atrace_items(traced, items)


async def _atrace_items(traced: TracedGraph, items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    async with contextlib.aclosing(items):
        await traced.start()
        try:
            async for item in items:
                yield item
        except BaseException as error:
            await asyncio.shield(traced.fail(error))
            raise
        await traced.finish()


def inner_ends(event: event_pb2.Event) -> list[tuple[str, ...]]:
    """The namespaces in which graphs have ended before an event shows, if they are nodes."""
    if event.HasField("update"):
        around = tuple(event.namespace)
        return [(*around, f"{event.node}{TASK_SEPARATOR}{event.task_id}"), (*around, event.node)]
    if event.HasField("interrupt"):
        return [tuple(question.checkpoint.namespace) for question in event.interrupt.interrupts]
    return []
