"""Caches of node results."""

from graphd.worker.cache import InMemoryCache

__all__ = ["InMemoryCache"]
