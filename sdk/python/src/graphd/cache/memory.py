"""A cache in this process."""

from __future__ import annotations

import threading
import time


class InMemoryCache:
    """Keeps results in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[bytes, float | None]] = {}

    def read(self, key: str) -> bytes | None:
        """The value of a key, None when it has none or is too old."""
        with self._lock:
            value, until = self._kept.get(key, (None, None))
            return None if until is not None and until < time.monotonic() else value

    def write(self, key: str, value: bytes, ttl: float | None) -> None:
        """Keeps a value for so many seconds, or for ever."""
        with self._lock:
            self._kept[key] = (value, None if ttl is None else time.monotonic() + ttl)

    def drop(self, prefix: str) -> None:
        """Forgets all keys that begin like this."""
        with self._lock:
            self._kept = {k: v for k, v in self._kept.items() if not k.startswith(prefix)}


__all__ = ["InMemoryCache"]
