"""The shape of a graph, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from graphd.constants import END, START

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
        self._opened: list[str] = []
        self._add(program, depth, "")
        if any(e.target == END for e in self.edges):
            self.nodes[END] = Node(END, END)

    def _add(self, program: Program, depth: int, prefix: str) -> None:
        opened = program.children() if depth > 0 else {}
        for name, node in program.nodes.items():
            if name in opened:
                self._opened.append(prefix + name)
                self._add(opened[name].program, depth - 1, f"{prefix}{name}:")
            else:
                self.nodes[prefix + name] = Node(prefix + name, name, node.target, dict(node.metadata) or None)
        for edge in _edges(program):
            for source in _ends(program, opened, edge.source, prefix, last=True):
                for target in _ends(program, opened, edge.target, prefix, last=False):
                    self.edges.append(Edge(source, target, edge.data, edge.conditional))

    def draw_mermaid(self, *, with_styles: bool = True, **_: Any) -> str:
        """The graph as text for Mermaid."""
        lines = ["---", "config:", "  flowchart:", "    curve: linear", "---"] if with_styles else []
        lines.append("graph TD;")
        for node in self.nodes.values():
            shown = f"([<p>{node.name}</p>])" if node.id in (START, END) else f"({node.name})"
            lines.append(f"\t{_word(node.id)}{shown}")
        for edge in self.edges:
            arrow = "-.->" if edge.conditional else "-->"
            if edge.data is not None:
                arrow = f"-. &nbsp;{edge.data}&nbsp; .->"
            lines.append(f"\t{_word(edge.source)} {arrow} {_word(edge.target)};")
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Nodes and edges as plain data."""
        edges = [{k: v for k, v in e._asdict().items() if v not in (None, False)} for e in self.edges]
        return {"nodes": [{"id": n.id, "name": n.name} for n in self.nodes.values()], "edges": edges}


def _edges(program: Program) -> Iterator[Edge]:
    for sources, target in program.builder.order:
        for source in sources:
            yield Edge(source, target)
    for branches in program.builder.branches.values():
        for branch in branches.values():
            if branch.paths is not None:
                for key, target in branch.paths.items():
                    yield Edge(branch.source, target, None if key == target else str(key), True)
            else:
                for target in program.targets(branch):
                    yield Edge(branch.source, target, None, True)
    leaving = {s for sources, _ in program.builder.order for s in sources} | set(program.builder.branches)
    for node in program.nodes.values():
        for target in node.destinations:
            yield Edge(node.name, target, None, True)
        if node.name not in leaving and not node.destinations:
            yield Edge(node.name, END)


def _ends(program: Program, opened: dict[str, Any], name: str, prefix: str, *, last: bool) -> list[str]:
    if name in opened:
        inner = opened[name].program
        if last:
            found = [e.source for e in _edges(inner) if e.target == END]
        else:
            found = [e.target for e in _edges(inner) if e.source == START]
        return [f"{prefix}{name}:{f}" for f in dict.fromkeys(found)]
    if name in (START, END):
        return [] if prefix else [name]
    return [prefix + name]


def _word(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else f"\\{ord(c):x}" for c in name)
