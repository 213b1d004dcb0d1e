"""The event loop of nodes: their caller's, or one of their own."""

from __future__ import annotations

import asyncio
import threading

from graphd.runtime.blocked_loops import is_blocked
from graphd.runtime.local_runs import LocalRun

_lock = threading.Lock()
_loops: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []


def find_loop(local: LocalRun | None) -> asyncio.AbstractEventLoop:
    """The loop of the caller while it runs in this process, else one in the background; none that is held up."""
    loop = local.loop if local is not None else None
    return loop if loop is not None and loop.is_running() and not is_blocked(loop) else _background_loop()


def _background_loop() -> asyncio.AbstractEventLoop:
    """The first loop that is not held up, started when it is needed."""
    with _lock:
        _loops[:] = [one for one in _loops if one[1].is_alive()]  # a fork has no threads
        for loop, _ in _loops:
            if not is_blocked(loop):
                return loop
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="graphd-nodes", daemon=True)
        thread.start()
        _loops.append((loop, thread))
        return loop
