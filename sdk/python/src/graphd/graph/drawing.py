"""The shape of a graph, for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from graphd.constants import END, START
from graphd.graph.mermaid import Mermaid
from graphd.graph.names import HANDLER_PREFIX
from graphd.graph.walk import arrows

if TYPE_CHECKING:
    from graphd.graph.program import Program


class Node(NamedTuple):
    """One box."""

    id: str
    name: str
    data: Any = None
    metadata: dict[str, Any] | None = None


class Edge(NamedTuple):
    """One arrow; dotted when something decides whether it is taken."""

    source: str
    target: str
    data: str | None = None
    conditional: bool = False


class Drawing:
    """Nodes and edges, subgraphs opened down to a depth."""

    def __init__(self, program: Program, depth: int = 0) -> None:
        self.nodes: dict[str, Node] = {START: Node(START, START)}
        self.edges: list[Edge] = []
        for name in _in_order(program):
            self.nodes[name] = Node(name, name, program.nodes[name].target, _metadata(program, name) or None)
        for arrow in arrows(program):
            if arrow.target == END and END not in self.nodes:
                self.nodes[END] = Node(END, END)
            if not any((e.source, e.target) == (arrow.source, arrow.target) for e in self.edges):
                self.edges.append(Edge(arrow.source, arrow.target, arrow.label or None, arrow.conditional))
        if depth > 0:
            for name, child in program.graphs().items():
                self._open(name, Drawing(child.program, depth - 1))

    def _open(self, name: str, inner: Drawing) -> None:
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
        return self._only({e.target for e in self.edges})

    def last_node(self) -> Node | None:
        """The one node that no arrow leaves, None unless there is one."""
        return self._only({e.source for e in self.edges})

    def _only(self, others: Collection[str], without: str = "") -> Node | None:
        found = [n for n in self.nodes.values() if n.id not in others and n.id != without]
        return found[0] if len(found) == 1 else None

    def trim_first_node(self) -> None:
        """Takes the first node away if another one is the first then."""
        first = self.first_node()
        if first is None or len({e for e in self.edges if e.source == first.id}) != 1:
            return
        if self._only({e.target for e in self.edges if e.source != first.id}, first.id):
            self._remove(first)

    def trim_last_node(self) -> None:
        """Takes the last node away if another one is the last then."""
        last = self.last_node()
        if last is None or len({e for e in self.edges if e.target == last.id}) != 1:
            return
        if self._only({e.source for e in self.edges if e.target != last.id}, last.id):
            self._remove(last)

    def _remove(self, node: Node) -> None:
        del self.nodes[node.id]
        self.edges = [e for e in self.edges if node.id not in (e.source, e.target)]

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve_style: Any = "linear",
        node_colors: Any = None,
        wrap_label_n_words: int = 9,
        frontmatter_config: Mapping[str, Any] | None = None,
    ) -> str:
        """The graph as text for Mermaid."""
        return Mermaid(
            self,
            with_styles=with_styles,
            curve=str(getattr(curve_style, "value", curve_style)),
            styles=node_colors,
            words=wrap_label_n_words,
            front=frontmatter_config or {},
        ).text()

    def to_json(self, *, with_schemas: bool = False) -> dict[str, Any]:
        """Nodes and edges as plain data."""
        del with_schemas
        edges = [{k: v for k, v in e._asdict().items() if v not in (None, False)} for e in self.edges]
        return {"nodes": [{"id": n.id, "name": n.name} for n in self.nodes.values()], "edges": edges}


def _in_order(program: Program) -> list[str]:
    """The nodes as they were added, the handler of one node before it."""
    own = {n.handles: n.name for n in program.nodes.values() if n.name == f"{HANDLER_PREFIX}{n.handles}"}
    others = [name for name in program.nodes if name not in own.values()]
    return [n for name in others for n in ((own[name], name) if name in own else (name,))]


def _metadata(program: Program, name: str) -> dict[str, Any]:
    """What is written into a box besides its name."""
    node = program.nodes[name]
    found = dict(node.metadata)
    if node.deferred:
        found["defer"] = True
    stops = [
        when
        for when, names in (("before", program.interrupt_before), ("after", program.interrupt_after))
        if name in names
    ]
    return found | ({"__interrupt": ",".join(stops)} if stops else {})
