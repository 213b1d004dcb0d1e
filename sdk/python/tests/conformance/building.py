"""Graphs with mistakes, and graphs that look like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from .library import Library

END, START = "__end__", "__start__"

Edge = tuple[Any, str]


class State(TypedDict):
    a: list[str]


def _graph(library: Library, *edges: Edge, nodes: tuple[str, ...] = ("n",)) -> Any:
    builder = library.StateGraph(State)
    for name in nodes:
        builder.add_node(name, lambda state: {})
    for source, target in edges:
        builder.add_edge(source, target)
    return builder


def _compiled(*edges: Edge, nodes: tuple[str, ...] = ("n",), **options: Any) -> Callable[[Library, Any], Any]:
    return lambda library, saver: _graph(library, *edges, nodes=nodes).compile(**options)


def _path_map(library: Library, saver: Any) -> Any:
    def condition(state: State) -> str:
        return "zz"

    return _graph(library, (START, "n")).add_conditional_edges("n", condition, {"zz": "zz"}).compile()


MISTAKES: dict[str, Callable[[Library, Any], Any]] = {
    "no edge from START": _compiled(),
    "edge START→unknown m": _compiled((START, "m")),
    "edge from unknown x": _compiled((START, "n"), ("x", "n")),
    "duplicate node": _compiled(nodes=("n", "n")),
    "reserved node name __start__": _compiled(nodes=(START,)),
    "node name with |": _compiled(nodes=("a|b",)),
    "node name with :": _compiled(nodes=("a:b",)),
    "interrupt_before unknown node": _compiled((START, "n"), interrupt_before=["zz"]),
    "END as edge source": _compiled((END, "n")),
    "START as edge target": _compiled(("n", START)),
    "path_map to unknown node": _path_map,
    "unreachable node (accepted)": _compiled((START, "n"), nodes=("n", "alone")),
    "join edge with unknown source": _compiled((["n", "m"], END)),
    "invoke root graph compiled with checkpointer=True": lambda library, saver: (
        _graph(library, (START, "n")).compile(checkpointer=True).invoke({"a": []})
    ),
    "invoke with checkpointer but no thread_id": lambda library, saver: (
        _graph(library, (START, "n")).compile(checkpointer=saver).invoke({"a": []})
    ),
    "node with the name of a state key (accepted since 1.x)": _compiled((START, "a"), nodes=("a",)),
}
