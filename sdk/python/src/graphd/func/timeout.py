"""Ends coroutines of tasks that take too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from graphd.errors import NodeTimeoutError
from graphd.runtime.task import CurrentTask
from graphd.values.policy import TimeoutPolicy


async def run_with_timeout(
    policy: TimeoutPolicy | None, name: str, task: CurrentTask, coroutine: Coroutine[Any, Any, Any]
) -> Any:
    """What the coroutine returns; NodeTimeoutError when it takes longer, or is silent for longer, than it may."""
    if policy is None:
        return await coroutine
    begun = time.monotonic()
    task.note_progress()
    running = asyncio.ensure_future(coroutine)
    try:
        while not running.done():
            left = find_time_left(policy, name, begun, task.progressed, time.monotonic())
            await asyncio.wait([running], timeout=left)
    except BaseException:  # it is too late, or the caller was cancelled
        running.cancel()
        await asyncio.wait([running])
        raise
    return running.result()


def find_time_left(policy: TimeoutPolicy, name: str, begun: float, progressed: float, now: float) -> float:
    """Seconds until the next limit; raises NodeTimeoutError when one is reached."""
    run, idle = _to_seconds(policy.run_timeout), _to_seconds(policy.idle_timeout)
    if run is not None and now - begun >= run:
        raise NodeTimeoutError(name, now - begun, kind="run", run_timeout=run)
    if idle is not None and now - progressed >= idle:
        raise NodeTimeoutError(name, now - begun, kind="idle", idle_timeout=idle)
    ends = [*([] if run is None else [begun + run]), *([] if idle is None else [progressed + idle])]
    return min(ends) - now


def _to_seconds(given: float | timedelta | None) -> float | None:
    return given.total_seconds() if isinstance(given, timedelta) else given


__all__ = ["find_time_left", "run_with_timeout"]
