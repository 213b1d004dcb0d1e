"""A cache in this process."""

from __future__ import annotations

import threading
import time

_FEW = 1000  # entries among which none is looked for that is too old


class InMemoryCache:
    """Keeps results in this process. Those that are too old make room for new ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[bytes, float | None]] = {}
        self._most = _FEW  # entries before those that are too old are looked for

    def read(self, key: str) -> bytes | None:
        """The value of a key, None when it has none or is too old."""
        with self._lock:
            value, until = self._kept.get(key, (None, None))
            return None if until is not None and until < time.monotonic() else value

    def write(self, key: str, value: bytes, ttl: float | None) -> None:
        """Keeps a value for so many seconds, or for ever."""
        with self._lock:
            self._kept[key] = (value, None if ttl is None else time.monotonic() + ttl)
            if len(self._kept) > self._most:
                self._drop_old()

    def _drop_old(self) -> None:
        now = time.monotonic()
        self._kept = {k: (v, until) for k, (v, until) in self._kept.items() if until is None or until >= now}
        self._most = max(_FEW, 2 * len(self._kept))  # so that each entry is looked at a few times at most

    def drop(self, prefix: str) -> None:
        """Forgets all keys that begin like this."""
        with self._lock:
            self._kept = {k: v for k, v in self._kept.items() if not k.startswith(prefix)}


__all__ = ["InMemoryCache"]
