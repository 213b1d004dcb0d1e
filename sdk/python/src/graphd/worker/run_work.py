"""Calls the code of an attempt."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.worker.work import Work
from graphd.worker.work_result import build_raised, build_returned


def run_work(work: Work) -> pb.TaskResult:
    """Calls the code and says what came of it."""
    positional, named = work.arguments
    try:
        with work.task.running:
            result = work.action.call(*positional, **named)
        if inspect.isawaitable(result):
            raise TypeError(f"node {work.node!r} returned a coroutine from a plain function; make it async")
        return build_returned(work, result)
    except BaseException as error:  # every end of a node is a result
        return build_raised(work, error)


async def arun_work(work: Work) -> pb.TaskResult:
    """Like run_work, for async code."""
    positional, named = work.arguments
    try:
        async with work.task.running:
            if work.streams and work.action.stream is not None:
                value = await _add_pieces(work.action.stream(*positional, **named))
            else:
                result: Awaitable[Any] = work.action.call(*positional, **named)
                value = await result
        return build_returned(work, value)
    except BaseException as error:  # every end of a node is a result
        return build_raised(work, error)


async def _add_pieces(pieces: AsyncIterator[Any]) -> Any:
    """The result of a runnable that streams."""
    result = None
    async for piece in pieces:
        try:
            result = piece if result is None else result + piece
        except TypeError:
            result = piece
    return result


__all__ = ["arun_work", "run_work"]
