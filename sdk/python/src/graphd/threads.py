"""Plain code that something on a loop waits for.

The few threads of ``asyncio.to_thread`` are the program's: it may wait in all of them for graphs, which would wait
for one of them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class SharedThreads:
    """A limited number of threads for what waits for a server alone. A process that was forked has its own."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._renew_pool()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_pool)

    def _renew_pool(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(self._most, self._name)

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """The result of a call."""
        call = functools.partial(contextvars.copy_context().run, function, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def run_all(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The results of calls that are made at the same time; raises the error of the first that failed."""
        running = [self._pool.submit(call) for call in calls]
        concurrent.futures.wait(running)
        return [one.result() for one in running]


_shared = SharedThreads(32, "graphd-call")
memo_threads = SharedThreads(32, "graphd-memo")
"""Of nodes that store a memo, or ask whether they still own their task. A silent server keeps them for long, and calls
of other servers must not wait for that."""
store_threads = SharedThreads(16, "graphd-store")
"""Of the operations of one batch of a store."""
saver_threads = SharedThreads(32, "graphd-saver")
"""Of a checkpointer of LangGraph."""


async def run_blocking(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """The result of a call that waits for a server alone: for no other call, and for no code of the program."""
    return await _shared.run(function, *arguments, **named)


async def run_in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """The result of a call in a thread of its own, which does not keep the process from ending.

    Tools and models are called so. They may wait for another agent, which has tools and a model too. Were all threads
    together limited, each could wait for one that another holds.
    """
    return await asyncio.wrap_future(begin_in_thread(function, *arguments))


def begin_in_thread(function: Callable[..., T], *arguments: Any) -> concurrent.futures.Future[T]:
    """Like run_in_thread, for plain code: the future of the result."""
    variables, outcome = contextvars.copy_context(), concurrent.futures.Future[T]()

    def run() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(variables.run(call_without_stop, function, *arguments))
        except BaseException as error:  # it is raised where the result is asked for
            outcome.set_exception(error)

    threading.Thread(target=run, name="graphd-agent", daemon=True).start()
    return outcome


def call_without_stop(function: Callable[..., T], *arguments: Any) -> T:
    """The result of a call. A StopIteration is a RuntimeError, as in coroutines: futures of loops can't hold one."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


__all__ = ["begin_in_thread", "call_without_stop", "memo_threads", "run_blocking", "run_in_thread", "saver_threads"]
