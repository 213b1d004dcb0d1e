"""The cache of node results in this process."""

from __future__ import annotations

import time

import pytest

from graphd.cache import InMemoryCache


def test_what_is_too_old_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    cache = InMemoryCache()
    cache.write("kept", b"1", None)
    for key in range(5000):
        now += 1.0
        cache.write(str(key), b"2", 10.0)
    assert cache.read("kept") == b"1"
    assert (cache.read("4000"), cache.read("4999")) == (None, b"2")
    assert len(cache._kept) < 2500, "no caller reads them, so writing must make room"
