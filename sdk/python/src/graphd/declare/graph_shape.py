"""What a call has to know of the graph that it is for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from graphd.declare.functional import FunctionBuilder
from graphd.declare.program import Program


class GraphShape(Protocol):
    """A graph, as far as calls need it. A Program is one."""

    @property
    def name(self) -> str:
        """Its name in the server."""

    @property
    def channels(self) -> Mapping[str, Any]:
        """The keys of its state."""

    @property
    def message_keys(self) -> frozenset[str]:
        """The keys whose values are lists of messages."""

    @property
    def is_root(self) -> bool:
        """Its whole state is one value, and so are inputs and updates."""

    @property
    def function(self) -> FunctionBuilder | None:
        """The declaration of a graph that is one function, an entrypoint; None for other graphs."""

    def find_graph(self, levels: Iterable[str]) -> Program | None:
        """The graph in a namespace; None when there is none, or it is not known."""


class UndeclaredGraph:
    """A graph of which only the name is known, "" for that of the thread. Its states stay plain
    JSON, and the server alone checks what is written to them."""

    channels: Mapping[str, Any] = {}
    message_keys: frozenset[str] = frozenset()
    is_root = True
    function: FunctionBuilder | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def find_graph(self, levels: Iterable[str]) -> Program | None:
        """None: what is below is not known either."""
        del levels
        return None
