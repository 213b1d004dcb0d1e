"""The event loop of nodes whose caller has none in this process."""

from __future__ import annotations

import asyncio
import threading

_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def background_loop() -> asyncio.AbstractEventLoop:
    """The loop, started when it is first needed."""
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="graphd-nodes", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
