"""Event loops that a coroutine has blocked by a plain call: no node can run there before the call returns."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

_lock = threading.Lock()
_blocked: Counter[asyncio.AbstractEventLoop] = Counter()


@contextlib.contextmanager
def block_loop() -> Iterator[None]:
    """A block that holds up the loop that runs in this thread, if there is one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        yield
        return
    with _lock:
        _blocked[loop] += 1
    try:
        yield
    finally:
        with _lock:
            _blocked[loop] -= 1
            if not _blocked[loop]:
                del _blocked[loop]


def is_blocked(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a coroutine holds a loop up."""
    return bool(_blocked) and loop in _blocked
