"""Futures of tasks."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:

    class TaskFuture(concurrent.futures.Future[T]):
        """The result of a task, to be: in async code an asyncio.Future, elsewhere one of concurrent.futures."""

        def __await__(self) -> Generator[Any, None, T]: ...

else:
    TaskFuture = concurrent.futures.Future


def build_ended_future(value: Any) -> Any:
    """A future that has its value, of the kind that the calling code expects."""
    loop = find_running_loop()
    future: Any = concurrent.futures.Future() if loop is None else loop.create_future()
    future.set_result(value)
    return future


def mark_retrieved(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """A future of whose failure the loop does not complain when nobody looks at it: the failure is told to the run."""
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return future


def find_running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs the calling code, None for plain code."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


__all__ = ["TaskFuture", "build_ended_future", "find_running_loop", "mark_retrieved"]
