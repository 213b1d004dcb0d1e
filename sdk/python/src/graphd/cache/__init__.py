"""Caches of node results."""

from graphd.cache.memory import InMemoryCache

__all__ = ["InMemoryCache"]
