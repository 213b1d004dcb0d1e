"""The shape of a graph, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphd.constants import END, START
from graphd.declare.program import Program
from graphd.drawing.arrows import find_arrows
from graphd.drawing.diagram import Diagram, Edge, Node
from graphd.drawing.mermaid import MermaidWriter
from graphd.names import HANDLER_PREFIX
from graphd.packages import require_module


class Drawing(Diagram):
    """Nodes and edges, subgraphs opened down to a depth."""

    def __init__(self, program: Program, depth: int = 0) -> None:
        super().__init__()
        self.nodes[START] = Node(START, START)
        for name in _order_nodes(program):
            self.nodes[name] = Node(name, name, program.nodes[name].target, _box_metadata(program, name) or None)
        for arrow in find_arrows(program):
            if arrow.target == END and END not in self.nodes:
                self.nodes[END] = Node(END, END)
            if not any((e.source, e.target) == (arrow.source, arrow.target) for e in self.edges):
                self.edges.append(Edge(arrow.source, arrow.target, arrow.label or None, arrow.conditional))
        if depth > 0:
            for name, child in program.graphs.items():
                self.expand_node(name, Drawing(child.program, depth - 1))

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
        return MermaidWriter(
            self,
            with_styles=with_styles,
            curve=str(getattr(curve_style, "value", curve_style)),
            styles=node_colors,
            words=wrap_label_n_words,
            front=frontmatter_config or {},
        ).render()

    def draw_ascii(self) -> str:
        """The graph as a drawing of characters; needs langchain-core and grandalf."""
        return str(self._as_langchain_graph("draw_ascii()").draw_ascii())

    def print_ascii(self) -> None:
        """Prints what draw_ascii returns."""
        print(self.draw_ascii())

    def draw_png(
        self,
        output_file_path: str | None = None,
        fontname: str | None = None,
        labels: Any = None,
    ) -> bytes | None:
        """The graph as an image, drawn here; needs langchain-core and pygraphviz.

        With ``output_file_path`` it is written to that file, and None is returned.
        """
        graph = self._as_langchain_graph("draw_png()")
        image: bytes | None = graph.draw_png(output_file_path, fontname=fontname, labels=labels)
        return image

    def draw_mermaid_png(self, **options: Any) -> bytes:
        """The graph as an image, drawn by a server of Mermaid or by pyppeteer; needs langchain-core.

        The options are those of LangChain's ``Graph.draw_mermaid_png``.
        """
        return bytes(self._as_langchain_graph("draw_mermaid_png()").draw_mermaid_png(**options))

    def _as_langchain_graph(self, needed_by: str) -> Any:
        """The same boxes and arrows, as LangChain draws them."""
        library = require_module("langchain_core.runnables.graph", needed_by)
        nodes = {key: library.Node(n.id, n.name, n.data, n.metadata) for key, n in self.nodes.items()}
        return library.Graph(nodes, [library.Edge(*edge) for edge in self.edges])

    def to_json(self, *, with_schemas: bool = False) -> dict[str, Any]:
        """Nodes and edges as plain data."""
        del with_schemas
        edges = [{k: v for k, v in e._asdict().items() if v not in (None, False)} for e in self.edges]
        return {"nodes": [{"id": n.id, "name": n.name} for n in self.nodes.values()], "edges": edges}


def _order_nodes(program: Program) -> list[str]:
    """The nodes as they were added, the handler of one node before it."""
    own = {n.handles: n.name for n in program.nodes.values() if n.name == f"{HANDLER_PREFIX}{n.handles}"}
    others = [name for name in program.nodes if name not in own.values()]
    return [n for name in others for n in ((own[name], name) if name in own else (name,))]


def _box_metadata(program: Program, name: str) -> dict[str, Any]:
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
