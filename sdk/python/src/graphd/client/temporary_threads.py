"""Deletes the threads of calls without one of their own. Those that end while a deletion is under way go together
with the next."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from weakref import WeakKeyDictionary

from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.errors import GraphdError
from graphd.transport.server import Server, Stubs, acall_unary

_MOST = 100  # threads in one call


class ThreadDeletions:
    """The deletions of one server and loop."""

    def __init__(self, stubs: Stubs) -> None:
        self._threads = stubs.threads  # not the stubs, which end with their loop
        self._waiting: list[str] = []
        self._ends: list[asyncio.Future[None]] = []
        self._running: asyncio.Task[None] | None = None

    def delete_thread(self, thread: str) -> asyncio.Future[None]:
        """Deletes a thread; ends when that was tried. It goes on when the caller is cancelled."""
        end = asyncio.get_running_loop().create_future()
        self._waiting.append(thread)
        self._ends.append(end)
        if self._running is None:
            self._running = asyncio.ensure_future(self._delete_waiting())
        return end

    async def _delete_waiting(self) -> None:
        try:
            while self._waiting:
                threads, ends = self._waiting[:_MOST], self._ends[:_MOST]
                del self._waiting[:_MOST], self._ends[:_MOST]
                try:
                    await self._delete(threads)
                finally:
                    for end in ends:
                        if not end.done():  # its caller was cancelled
                            end.set_result(None)
        finally:
            self._running = None

    async def _delete(self, threads: list[str]) -> None:
        if len(threads) > 1:
            request = ts.DeleteThreadsRequest(thread_ids=threads, force=True)
            try:
                await acall_unary(self._threads.DeleteThreads, request)
                return
            except GraphdError as problem:
                if problem.code != "UNIMPLEMENTED":
                    return
        for thread in threads:
            with contextlib.suppress(GraphdError):
                await acall_unary(self._threads.DeleteThread, ts.DeleteThreadRequest(thread_id=thread, force=True))


_known: WeakKeyDictionary[Any, ThreadDeletions] = WeakKeyDictionary()


def find_deletions(server: Server) -> ThreadDeletions:
    """The deletions of a server on the running loop."""
    stubs = server.astubs
    if (known := _known.get(stubs)) is None:
        known = _known[stubs] = ThreadDeletions(stubs)
    return known


__all__ = ["ThreadDeletions", "find_deletions"]
