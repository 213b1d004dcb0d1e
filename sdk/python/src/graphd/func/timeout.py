"""Ends coroutines that take too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from graphd.errors import NodeTimeoutError
from graphd.values.policy import TimeoutPolicy


async def run_within(policy: TimeoutPolicy | None, name: str, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine returns; NodeTimeoutError when it takes longer than its policy allows."""
    if policy is None or policy.run_timeout is None:
        return await coroutine
    limit, begun = _seconds(policy.run_timeout), time.monotonic()
    running = asyncio.ensure_future(coroutine)
    try:
        ended, _ = await asyncio.wait([running], timeout=limit)
    except asyncio.CancelledError:
        running.cancel()
        raise
    if not ended:
        running.cancel()
        await asyncio.wait([running])
        raise NodeTimeoutError(name, time.monotonic() - begun, kind="run", run_timeout=limit)
    return running.result()


def _seconds(given: float | timedelta) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)


__all__ = ["run_within"]
