"""The tasks that some code has called, and that may not have ended yet."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

from graphd.errors import GraphBubbleUp
from graphd.threads import call_without_stop

_MOST_THREADS = 32
Future = concurrent.futures.Future[Any] | asyncio.Future[Any]


class RunningCalls:
    """The calls of one task or node. Safe to use from several threads.

    They have threads of their own: code that waits for a task never holds the
    thread which that task needs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: set[concurrent.futures.Future[Any]] = set()
        self._async: set[asyncio.Future[Any]] = set()
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None

    def submit_call(self, run: Callable[[], Any], most: int | None) -> concurrent.futures.Future[Any]:
        """Runs a plain task in a thread; at most so many at a time."""
        with self._lock:
            if self._threads is None:
                self._threads = concurrent.futures.ThreadPoolExecutor(most or _MOST_THREADS, "graphd-task")
            future = self._threads.submit(call_without_stop, run)
        self.add_future(future)
        return future

    def add_future(self, future: Future) -> None:
        """Takes a call that has begun."""
        with self._lock:
            if isinstance(future, asyncio.Future):
                self._async.add(future)
            else:
                self._plain.add(future)
        future.add_done_callback(self._forget)

    def _forget(self, future: Any) -> None:
        with self._lock:
            self._plain.discard(future)
            self._async.discard(future)

    def __enter__(self) -> None:
        """Begins a block after which no call runs that was begun in it: what tasks ask belongs to its result."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._has_calls:
            self.wait_for_all(cancel=_cancels_calls(error))

    async def __aenter__(self) -> None:
        """Like __enter__; the end of the block does not stop the loop."""

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._has_calls:
            await self.await_all(cancel=_cancels_calls(error))

    @property
    def _has_calls(self) -> bool:
        return bool(self._plain or self._async or self._threads)

    def wait_for_all(self, *, cancel: bool) -> None:
        """Waits until all calls have ended; ``cancel`` ends those that have not begun."""
        while calls := self._take_plain(cancel=cancel):
            concurrent.futures.wait(calls)
        self._close()

    async def await_all(self, *, cancel: bool) -> None:
        """Like wait_for_all, without blocking the loop; ``cancel`` ends coroutines too.

        Who is cancelled while it waits cancels the calls, and waits for their ends.
        """
        stopped: asyncio.CancelledError | None = None
        while (calls := self._take_plain(cancel=cancel)) or self._async:
            with self._lock:
                coroutines, self._async = self._async, set()
            for future in coroutines if cancel else ():
                future.cancel()
            waiting = [*coroutines, *map(asyncio.wrap_future, calls)]
            for future in waiting:
                future.add_done_callback(_look_at_failure)
            try:
                await asyncio.wait(waiting)
            except asyncio.CancelledError as error:
                if cancel:
                    raise
                stopped, cancel = error, True
                self._put_back(calls, coroutines)
        self._close()
        if stopped is not None:
            raise stopped

    def _put_back(self, calls: set[concurrent.futures.Future[Any]], coroutines: set[asyncio.Future[Any]]) -> None:
        """Takes calls that are still waited for again."""
        with self._lock:
            self._plain |= {call for call in calls if not call.done()}
            self._async |= {call for call in coroutines if not call.done()}

    def _take_plain(self, *, cancel: bool) -> set[concurrent.futures.Future[Any]]:
        with self._lock:
            calls, self._plain = self._plain, set()
        return {call for call in calls if not (cancel and call.cancel())}

    def _close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


def _cancels_calls(error: BaseException | None) -> bool:
    """Whether calls that have not begun are to end with a block that has raised this."""
    return error is not None and not isinstance(error, GraphBubbleUp)


def _look_at_failure(ended: asyncio.Future[Any]) -> None:
    # The caller may have asked for it or not; the loop must not complain.
    if not ended.cancelled():
        ended.exception()


__all__ = ["Future", "RunningCalls"]
