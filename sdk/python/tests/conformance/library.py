"""The library under test: graphd, or LangGraph itself as the oracle."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any


class Library:
    """The public names of graphd or langgraph; both have the same modules."""

    def __init__(self, root: str) -> None:
        self.root = root

    def module(self, name: str) -> Any:
        """One of the library's modules."""
        return importlib.import_module(f"{self.root}.{name}")

    @cached_property
    def messages(self) -> Any:
        """The message classes."""
        return importlib.import_module("langchain_core.messages" if self.root == "langgraph" else "graphd.messages")

    def __getattr__(self, name: str) -> Any:
        for module in ("graph", "types", "errors", "channels", "config", "runtime", "checkpoint.memory"):
            if hasattr(found := self.module(module), name):
                return getattr(found, name)
        raise AttributeError(f"{self.root} has no {name}")


GRAPHD = Library("graphd")
