"""Boxes and arrows, and what is first and last among them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple


class Node(NamedTuple):
    """One box."""

    id: str
    name: str
    data: Any = None
    metadata: dict[str, Any] | None = None

    def copy(self, *, id: str | None = None, name: str | None = None) -> Node:
        """The box with another id or name."""
        return self._replace(id=id or self.id, name=name or self.name)


class Edge(NamedTuple):
    """One arrow; dotted when something decides whether it is taken."""

    source: str
    target: str
    data: str | None = None
    conditional: bool = False

    def copy(self, *, source: str | None = None, target: str | None = None) -> Edge:
        """The arrow between other boxes."""
        return self._replace(source=source or self.source, target=target or self.target)


class Diagram:
    """Nodes by id, and the edges between them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []

    def expand_node(self, name: str, inner: Diagram) -> None:
        """Puts a graph in the place of its node."""
        if len(inner.nodes) < 2 or inner.first_node() is None or inner.last_node() is None:
            return
        inner.trim_first_node()
        inner.trim_last_node()
        first, last = inner.first_node(), inner.last_node()
        if first is None or last is None:
            return
        del self.nodes[name]
        self.nodes |= {f"{name}:{i}": n._replace(id=f"{name}:{i}") for i, n in inner.nodes.items()}
        outside = [
            e._replace(
                source=f"{name}:{last.id}" if e.source == name else e.source,
                target=f"{name}:{first.id}" if e.target == name else e.target,
            )
            for e in self.edges
        ]
        inside = [e._replace(source=f"{name}:{e.source}", target=f"{name}:{e.target}") for e in inner.edges]
        self.edges = outside + inside

    def first_node(self) -> Node | None:
        """The one node that no arrow leads to, None unless there is one."""
        return self._find_only({e.target for e in self.edges})

    def last_node(self) -> Node | None:
        """The one node that no arrow leaves, None unless there is one."""
        return self._find_only({e.source for e in self.edges})

    def _find_only(self, others: Collection[str], without: str = "") -> Node | None:
        found = [n for n in self.nodes.values() if n.id not in others and n.id != without]
        return found[0] if len(found) == 1 else None

    def trim_first_node(self) -> None:
        """Takes the first node away if another one is the first then."""
        first = self.first_node()
        if first is None or len({e for e in self.edges if e.source == first.id}) != 1:
            return
        if self._find_only({e.target for e in self.edges if e.source != first.id}, first.id):
            self._remove_node(first)

    def trim_last_node(self) -> None:
        """Takes the last node away if another one is the last then."""
        last = self.last_node()
        if last is None or len({e for e in self.edges if e.target == last.id}) != 1:
            return
        if self._find_only({e.source for e in self.edges if e.target != last.id}, last.id):
            self._remove_node(last)

    def _remove_node(self, node: Node) -> None:
        del self.nodes[node.id]
        self.edges = [e for e in self.edges if node.id not in (e.source, e.target)]
