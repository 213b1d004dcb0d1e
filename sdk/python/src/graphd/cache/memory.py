"""A cache in this process."""

from graphd.worker.cache import InMemoryCache

__all__ = ["InMemoryCache"]
