"""Plain code that something on a loop waits for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable
from typing import Any


async def run_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call in a thread of its own, which does not keep the process from ending.

    Tools and models are called so. They may wait for another agent, which has tools and a model too. Were all threads
    together limited, each could wait for one that another holds.
    """
    return await asyncio.wrap_future(begin_in_thread(function, *arguments))


def begin_in_thread(function: Callable[..., Any], *arguments: Any) -> concurrent.futures.Future[Any]:
    """Like run_in_thread, for plain code: the future of the result."""
    variables, outcome = contextvars.copy_context(), concurrent.futures.Future[Any]()

    def run() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            outcome.set_result(variables.run(call_without_stop, function, *arguments))
        except BaseException as error:  # it is raised where the result is asked for
            outcome.set_exception(error)

    threading.Thread(target=run, name="graphd-agent", daemon=True).start()
    return outcome


def call_without_stop(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call. A StopIteration is a RuntimeError, as in coroutines: futures of loops can't hold one."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


__all__ = ["begin_in_thread", "call_without_stop", "run_in_thread"]
