"""Graphs as text for Mermaid, the same text as LangChain's."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from graphd.drawing.diagram import Diagram, Edge, Node

_STYLES = {"default": "fill:#f2f0ff,line-height:1.2", "first": "fill-opacity:0", "last": "fill:#bfb6fc"}
_PLAIN = string.ascii_letters + string.digits + "_-"
_MARKDOWN = ("*", "_", "`")
_ENTITIES = {c: f"#{ord(c)};" for c in "[](){}<>|"} | {'"': "#quot;"}


class MermaidWriter:
    """One picture, written down."""

    def __init__(
        self,
        picture: Diagram,
        *,
        with_styles: bool,
        curve: str,
        styles: Any,
        words: int,
        front: Mapping[str, Any],
    ) -> None:
        self._picture, self._styled, self._words = picture, with_styles, words
        config = dict(front.get("config") or {})
        config["flowchart"] = {**(config.get("flowchart") or {}), "curve": curve}
        self._front = {**front, "config": config}
        given = asdict(styles) if is_dataclass(styles) and not isinstance(styles, type) else styles
        self._styles = _STYLES | dict(given or {})
        first, last = picture.first_node(), picture.last_node()
        self._ends = {n.id: role for n, role in ((first, "first"), (last, "last")) if n is not None}
        self._groups: dict[str, list[Edge]] = {}
        for edge in picture.edges:
            self._groups.setdefault(_common_subgraph(edge), []).append(edge)
        self._shown: set[str] = set()

    def render(self) -> str:
        """All of it."""
        lines = ["---", *_yaml_lines(self._front, ""), "---"] if self._styled else []
        lines.append("graph TD;")
        lines += self._node_lines("")
        lines += self._subgraph_lines("")
        for prefix in self._groups:
            if prefix and ":" not in prefix:
                lines += self._subgraph_lines(prefix)
        lines += self._edgeless_subgraphs()
        if self._styled:
            lines += [f"\tclassDef {name} {style}" for name, style in self._styles.items()]
        return "\n".join(lines) + "\n"

    def _node_lines(self, prefix: str) -> Iterator[str]:
        """The nodes right inside of a subgraph, "" for outside of all."""
        if self._styled:
            for key, node in self._picture.nodes.items():
                if key.rpartition(":")[0] == prefix:
                    yield self._node_line(key, node)

    def _node_line(self, key: str, node: Node) -> str:
        name = node.name.rpartition(":")[2]
        label = f"<p>{name}</p>" if name.startswith(_MARKDOWN) and name.endswith(_MARKDOWN) else name
        if lines := list(_metadata_lines(node.metadata or {})):
            label += "<hr/><small><em>" + "\n".join(lines) + "</em></small>"
        role = self._ends.get(key)
        return f"\t{_escape_name(key)}([{label}]):::{role}" if role else f"\t{_escape_name(key)}({label})"

    def _subgraph_lines(self, prefix: str) -> list[str]:
        """The arrows between nodes of a subgraph, and the subgraphs in it."""
        edges = self._groups.get(prefix, [])
        framed = bool(prefix) and not (len(edges) == 1 and edges[0].source == edges[0].target)
        lines: list[str] = []
        if framed:
            name = prefix.rpartition(":")[2]
            if name in self._shown:
                raise ValueError(f"two subgraphs are called {name!r}; give them names of their own to draw them")
            self._shown.add(name)
            lines += [f"\tsubgraph {name}", *self._node_lines(prefix)]
        lines += [f"\t{_escape_name(e.source)}{self._format_arrow(e)}{_escape_name(e.target)};" for e in edges]
        for inner in self._groups:
            if inner.startswith(prefix + ":") and ":" not in inner[len(prefix) + 1 :]:
                lines += self._subgraph_lines(inner)
        if prefix:
            self._shown.add(prefix)
        return [*lines, "\tend"] if framed else lines

    def _format_arrow(self, edge: Edge) -> str:
        if edge.data is None:
            return " -.-> " if edge.conditional else " --> "
        said, words = str(edge.data), str(edge.data).split()
        if len(words) > self._words:
            rows = [" ".join(words[i : i + self._words]) for i in range(0, len(words), self._words)]
            said = "&nbsp<br>&nbsp".join(rows)
        return f" -. &nbsp;{said}&nbsp; .-> " if edge.conditional else f" -- &nbsp;{said}&nbsp; --> "

    def _edgeless_subgraphs(self) -> Iterator[str]:
        """Subgraphs without an arrow inside."""
        prefixes = dict.fromkeys(key.rpartition(":")[0] for key in self._picture.nodes)
        for prefix in prefixes if self._styled else ():
            if prefix and ":" not in prefix and prefix not in self._shown:
                yield f"\tsubgraph {prefix}"
                yield from self._node_lines(prefix)
                yield "\tend"


def _common_subgraph(edge: Edge) -> str:
    """The subgraph that both ends are in."""
    pairs = zip(edge.source.split(":"), edge.target.split(":"), strict=False)
    return ":".join(one for one, other in pairs if one == other)


def _metadata_lines(metadata: Mapping[str, Any]) -> Iterator[str]:
    for key, value in metadata.items():
        if isinstance(value, (str, int, float, bool)):
            yield _escape_text(f"{key} = {value}")
        elif isinstance(value, (list, tuple, set)) and all(isinstance(v, (str, int, float, bool)) for v in value):
            items = [str(v) for v in value]
            yield _escape_text(f"{key} = {', '.join(sorted(items) if isinstance(value, set) else items)}")


def _escape_text(text: str) -> str:
    return "".join("#35;" if c == "#" else _ENTITIES.get(c, c) for c in text)


def _escape_name(name: str) -> str:
    return "".join(c if c in _PLAIN else f"\\{ord(c):x}" for c in name)


def _yaml_lines(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key in sorted(value):
        if isinstance(value[key], Mapping):
            yield f"{indent}{key}:"
            yield from _yaml_lines(value[key], indent + "  ")
        else:
            yield f"{indent}{key}: {_format_scalar(value[key])}"


def _format_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and (not value or value[0] in "#&*!|>'\"%@`{[,]}-?:" or ": " in value or " #" in value):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
