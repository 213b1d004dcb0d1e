"""The event loop of nodes: their caller's, or one of their own."""

from __future__ import annotations

import asyncio
import threading

from graphd.runtime.local_runs import LocalRun

_lock = threading.Lock()
_loops: list[tuple[asyncio.AbstractEventLoop, threading.Thread]] = []


def find_loop(local: LocalRun | None) -> asyncio.AbstractEventLoop:
    """The loop of the caller while it runs in this process, else the one in the background."""
    loop = local.loop if local is not None else None
    return loop if loop is not None and loop.is_running() else _background_loop()


def _background_loop() -> asyncio.AbstractEventLoop:
    """The loop, started when it is first needed."""
    with _lock:
        if not _loops or not _loops[0][1].is_alive():  # a fork has no threads
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="graphd-nodes", daemon=True)
            thread.start()
            _loops[:] = [(loop, thread)]
        return _loops[0][0]
