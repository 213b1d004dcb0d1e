"""Items that blocking code makes, for code on a loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
from collections.abc import AsyncGenerator, Generator

from graphd.client.items import Item


async def iterate_in_thread(items: Generator[Item, None, None]) -> AsyncGenerator[Item, None]:
    """Yields the items of a generator, which runs in a thread of its own.

    The threads that a loop keeps for ``asyncio.to_thread`` are few. Items of called graphs would hold all of them
    while the nodes of these graphs wait for one.
    """

    def next_item() -> Item | None:
        return next(items, None)

    pool, loop = concurrent.futures.ThreadPoolExecutor(1, "graphd-call"), asyncio.get_running_loop()
    try:
        while (item := await loop.run_in_executor(pool, contextvars.copy_context().run, next_item)) is not None:
            yield item
    finally:
        # Behind a step that is under way: a reader that was cancelled does not wait for it.
        pool.submit(items.close)
        pool.shutdown(wait=False)


__all__ = ["iterate_in_thread"]
