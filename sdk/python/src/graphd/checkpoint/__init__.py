"""Where threads are kept."""

from graphd.checkpoint.memory import InMemorySaver, MemorySaver

__all__ = ["InMemorySaver", "MemorySaver"]
