"""Deletes the threads of calls without one of their own. Those that end while deletions are under way go together
with the next."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.errors import GraphdError, NotFoundError
from graphd.transport.attempts import Deadline
from graphd.transport.server import Server, Stubs, acall_unary, call_unary

_log = logging.getLogger("graphd.client")

_MOST = 100  # threads in one call
_AT_ONCE = 4  # batches, and calls of a batch that goes one by one: a slow deletion does not hold up all others
_PATIENCE = 30.0  # seconds for a call, and for all calls of a batch that goes one by one


class _Deletion(NamedTuple):
    thread: str
    end: asyncio.Future[None]


class ThreadDeletions:
    """The deletions of one server and loop.

    A batch runs without the variables of the callers. A function that returns the token may read them to tell the
    caller, so with ``one_by_one`` each caller deletes its thread with a call of its own.
    """

    def __init__(self, stubs: Stubs, *, one_by_one: bool) -> None:
        self._threads = stubs.threads  # not the stubs, which end with their loop
        self._one_by_one = one_by_one
        self._waiting: list[_Deletion] = []
        self._running: set[asyncio.Task[None]] = set()

    def delete_thread(self, thread: str) -> asyncio.Future[None]:
        """Deletes a thread; ends when that was tried. It goes on when the caller is cancelled."""
        deletion = _Deletion(thread, asyncio.get_running_loop().create_future())
        if self._one_by_one:
            self._begin_batch([deletion])
        else:
            self._waiting.append(deletion)
            contextvars.Context().run(self._begin_batches)
        return deletion.end

    def _begin_batches(self) -> None:
        while self._waiting and len(self._running) < _AT_ONCE:
            batch = self._waiting[:_MOST]
            del self._waiting[:_MOST]
            self._begin_batch(batch)

    def _begin_batch(self, batch: Sequence[_Deletion]) -> None:
        task = asyncio.ensure_future(self._delete_threads([deletion.thread for deletion in batch]))
        self._running.add(task)
        task.add_done_callback(functools.partial(self._end_batch, batch))

    def _end_batch(self, batch: Sequence[_Deletion], task: asyncio.Task[None]) -> None:
        """Ends a batch however its task has ended: one that is cancelled early runs no code of its own."""
        self._running.discard(task)
        for deletion in batch:
            if not deletion.end.done():  # its caller was cancelled
                deletion.end.set_result(None)
        # A batch is cancelled when its loop ends. What no caller waits for then would not be over in time.
        if not task.cancelled() or any(not deletion.end.done() for deletion in self._waiting):
            self._begin_batches()

    async def _delete_threads(self, threads: Sequence[str]) -> None:
        if len(threads) == 1 or not await self._delete_together(threads):
            await self._delete_one_by_one(threads)

    async def _delete_together(self, threads: Sequence[str]) -> bool:
        """Whether one call could be made for all: one of them may fail the whole call."""
        request = ts.DeleteThreadsRequest(thread_ids=threads, force=True)
        try:
            answer = await acall_unary(_limit_time(self._threads.DeleteThreads, _PATIENCE), request)
        except Exception as problem:  # not of the server alone, as when the interpreter ends
            _log.info("%d temporary threads are deleted one by one: %s", len(threads), problem)
            return False
        for failure in answer.failures:
            if failure.reason != "THREAD_NOT_FOUND":
                _log_failure(failure.thread_id, failure.message or failure.reason)
        return True

    async def _delete_one_by_one(self, threads: Sequence[str]) -> None:
        left, deadline = iter(threads), Deadline(_PATIENCE)
        calls = min(_AT_ONCE, len(threads))
        await asyncio.gather(*(self._delete_each(left, deadline) for _ in range(calls)))

    async def _delete_each(self, left: Iterator[str], deadline: Deadline) -> None:
        for thread in left:
            try:
                delete = _limit_time(self._threads.DeleteThread, deadline.remaining())
                await acall_unary(delete, _build_request(thread))
            except NotFoundError:
                continue
            except Exception as problem:
                _log_failure(thread, problem)


_known: WeakKeyDictionary[Any, ThreadDeletions] = WeakKeyDictionary()


def find_deletions(server: Server) -> ThreadDeletions:
    """The deletions of a server on the running loop."""
    stubs = server.astubs
    if (known := _known.get(stubs)) is None:
        one_by_one = callable(server.target.security.token)
        known = _known[stubs] = ThreadDeletions(stubs, one_by_one=one_by_one)
    return known


def delete_now(server: Server, thread: str) -> None:
    """Deletes a thread. What keeps it from being deleted is logged."""
    try:
        call_unary(_limit_time(server.stubs.threads.DeleteThread, _PATIENCE), _build_request(thread))
    except NotFoundError:
        return
    except GraphdError as problem:
        _log_failure(thread, problem)


def _limit_time(method: Any, seconds: float | None) -> Any:
    return functools.partial(method, timeout=seconds)


def _build_request(thread: str) -> ts.DeleteThreadRequest:
    return ts.DeleteThreadRequest(thread_id=thread, force=True)


def _log_failure(thread: str, problem: object) -> None:
    _log.warning("the temporary thread %s is not deleted: %s", thread, problem)


__all__ = ["ThreadDeletions", "delete_now", "find_deletions"]
