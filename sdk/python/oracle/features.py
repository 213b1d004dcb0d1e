"""The features of the state API, and which of them a case draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oracle.script import ACTS, ENOUGH, MODES
from oracle.state_keys import ONLY_INPUT, PLAIN, PRIVATE, RARE


@dataclass(frozen=True)
class View:
    """The parts of a case that features are told by."""

    case: dict[str, Any]

    @cached_property
    def main(self) -> dict[str, Any]:
        """The graph that is called."""
        graph: dict[str, Any] = self.case["graphs"][-1]
        return graph

    @cached_property
    def children(self) -> list[dict[str, Any]]:
        """The graphs inside of it."""
        return list(self.case["graphs"][:-1])

    @cached_property
    def codes(self) -> list[str]:
        """The code of all nodes and routers."""
        graphs = self.case["graphs"]
        nodes = [code for g in graphs for code in g["nodes"].values()]
        return [*nodes, *(b["path"] for g in graphs for b in g.get("conditional_edges", []))]

    @cached_property
    def turns(self) -> list[dict[str, Any]]:
        """What the caller does."""
        return list(self.case["turns"])

    @cached_property
    def holders(self) -> set[str]:
        """Nodes of the main graph that are graphs."""
        return {name for name, code in self.main["nodes"].items() if code.startswith("<subgraph")}

    def has_code(self, text: str) -> bool:
        """Whether some node or router contains the text."""
        return any(text in code for code in self.codes)

    def options(self) -> Iterator[dict[str, Any]]:
        """The options of each call."""
        return (turn["options"] for turn in self.turns)

    def node_options(self, graphs: list[dict[str, Any]] | None = None) -> Iterator[dict[str, Any]]:
        """The options of each node that has some."""
        for graph in self.case["graphs"] if graphs is None else graphs:
            yield from graph.get("node_options", {}).values()


Test = Callable[[View], bool]


def _features() -> Iterator[tuple[str, Test]]:
    yield from _key_features()
    yield from _node_features()
    yield from _child_features()
    yield from _failure_features()
    yield from _call_features()
    yield from _script_features()


def _key_features() -> Iterator[tuple[str, Test]]:
    for key, kind in RARE.items():
        value = f"'{key}'"
        yield f"key {kind}: written by a node", lambda v, k=value: v.has_code(f"{k}:")  # type: ignore[misc]
        yield f"key {kind}: read by a node", lambda v, k=value: v.has_code(f"get({k})")  # type: ignore[misc]
        yield f"key {kind}: in an input", lambda v, k=key: any(k in t["later"] for t in v.turns)  # type: ignore[misc]
        yield f"key {kind}: in an update", lambda v, k=key: any(k in t["update"] for t in v.turns)  # type: ignore[misc]
    yield "Overwrite by a node", lambda v: v.has_code("Overwrite(")
    yield "Overwrite as JSON", lambda v: v.has_code("__overwrite__")
    yield "Overwrite in an update", lambda v: any("__overwrite__" in str(t["update"]) for t in v.turns)
    yield "Overwrite in a child", lambda v: any("Overwrite(" in c for g in v.children for c in g["nodes"].values())
    for part in ("input_schema", "output_schema", "node_input_schema"):
        yield f"{part} of a parent", lambda v, p=part: p in v.main  # type: ignore[misc]
        yield f"{part} of a child", lambda v, p=part: any(p in g for g in v.children)  # type: ignore[misc]
    yield "key of the input schema alone", lambda v: ONLY_INPUT in v.main.get("input_schema", [])
    yield "private key written", lambda v: v.has_code(f"'{PRIVATE}':")
    yield "private key read", lambda v: v.has_code(f"get('{PRIVATE}')")


def _node_features() -> Iterator[tuple[str, Test]]:
    yield "question", lambda v: v.has_code("interrupt(")
    yield "two questions of a node", lambda v: v.has_code("y=interrupt(")
    yield "question about a rare key", lambda v: v.has_code("x=interrupt(") and v.has_code("state.get(")
    yield "node without a write", lambda v: v.has_code("return None") or v.has_code("return {}")
    yield "several writes of a key", lambda v: v.has_code("update=[(") or v.has_code("[Command(")
    yield "custom events", lambda v: v.has_code("write(")
    yield "async node", lambda v: v.has_code("await ")
    yield "unknown key written", lambda v: v.has_code("'unknown'")
    yield "goto", lambda v: v.has_code("goto='")
    yield "goto of several", lambda v: v.has_code("goto=['")
    yield "goto of Sends", lambda v: v.has_code("goto=[Send(")
    yield "Send by a router", lambda v: any("Send(" in b["path"] for b in v.main.get("conditional_edges", []))
    yield "router", lambda v: v.has_code("len(state['log'])%2")
    yield "router with a map of paths", lambda v: any("path_map" in b for b in v.main.get("conditional_edges", []))
    yield "router at START", lambda v: any(b["from"] == "START" for b in v.main.get("conditional_edges", []))
    yield "loop", lambda v: v.has_code("state['n']<3")
    yield "join", lambda v: any(isinstance(e[0], list) for e in v.main["edges"])
    yield "parallel nodes", lambda v: sum(e[0] == "START" for e in v.main["edges"]) > 1
    yield "defer", lambda v: any("defer" in o for o in v.node_options())
    yield "breakpoint before", lambda v: "interrupt_before" in v.main["compile"]
    yield "breakpoint after", lambda v: "interrupt_after" in v.main["compile"]


def _child_features() -> Iterator[tuple[str, Test]]:
    for kind in ("inherit", "persist", "disabled"):
        yield (
            f"child that is {kind}",
            lambda v, k=kind: any(g["compile"]["checkpointer"] == k for g in v.children),  # type: ignore[misc]
        )
    yield "grandchild", lambda v: len(v.children) > 1
    yield "child called by code", lambda v: v.has_code("call_sub(")
    yield "question in a child", lambda v: any("interrupt(" in c for g in v.children for c in g["nodes"].values())
    yield "breakpoint in a child", lambda v: any("interrupt_" in str(g["compile"]) for g in v.children)
    yield "rare key of a child", lambda v: any(set(g["state"]) - set(PLAIN) for g in v.children)
    yield "goto into a child", lambda v: any(v.has_code(f"goto='{h}'") for h in v.holders)
    yield "Send into a child", lambda v: any(v.has_code(f"Send('{h}'") for h in v.holders)
    yield "Command to the parent", lambda v: v.has_code("graph=PARENT")
    yield "failure in a child", lambda v: any("raise " in c for g in v.children for c in g["nodes"].values())


def _failure_features() -> Iterator[tuple[str, Test]]:
    for error in ("Boom", "Other", "ValueError", "KeyError", "TypeError"):
        yield f"{error} of a node", lambda v, e=error: v.has_code(f"raise {e}(")  # type: ignore[misc]
    yield "failure once", lambda v: v.has_code("if mem.")
    yield "failure always", lambda v: any("raise" in c and "mem." not in c for c in v.codes)
    yield "result of a wrong kind", lambda v: any(v.has_code(f"return {x}") for x in ("5", "'text'", "[1]"))
    yield "failure of a router", lambda v: any(v.has_code(x) for x in ("1//0", "[][0]", "{}['x']"))
    yield "retry", lambda v: any("retry" in o for o in v.node_options())
    yield "error handler", lambda v: any("error_handler" in o for o in v.node_options())
    yield "default error handler", lambda v: any("node_defaults" in g for g in v.case["graphs"])
    yield "error handler in a child", lambda v: any("error_handler" in o for o in v.node_options(v.children))
    yield "question before a failure", lambda v: v.has_code("x=interrupt(") and v.has_code("if mem.")


def _call_features() -> Iterator[tuple[str, Test]]:
    for mode in MODES:
        yield f"mode {mode} alone", lambda v, m=mode: any(o["mode"] == m for o in v.options())  # type: ignore[misc]
        yield (
            f"mode {mode} in a list",
            lambda v, m=mode: any(isinstance(o["mode"], list) and m in o["mode"] for o in v.options()),  # type: ignore[misc]
        )
        yield (
            f"mode {mode} of a child's events",
            lambda v, m=mode: bool(v.children) and any("subgraphs" in o and m in o["mode"] for o in v.options()),  # type: ignore[misc]
        )
    for kind in ("sync", "async", "exit"):
        yield f"durability {kind}", lambda v, k=kind: any(o.get("durability") == k for o in v.options())  # type: ignore[misc]
    for option in ("interrupt_before", "interrupt_after", "output_keys", "version"):
        name = {"version": "version v2"}.get(option, option)
        yield f"call with {name}", lambda v, o=option: any(o in given for given in v.options())  # type: ignore[misc]
    yield "small recursion_limit", lambda v: any(o["config"]["recursion_limit"] < ENOUGH for o in v.options())


def _script_features() -> Iterator[tuple[str, Test]]:
    for situation, acts in ACTS.items():
        for act in acts:
            yield (
                f"{act} on a thread that is {situation}",
                lambda v, s=situation, a=act: any(t[s] == a for t in v.turns),  # type: ignore[misc]
            )
    yield "two threads", lambda v: len({t["thread"] for t in v.turns}) > 1
    yield "state of subgraphs", lambda v: any(t["state"] == "subgraphs" for t in v.turns)
    for name in (None, "__start__", "__end__", "__input__", "nobody"):
        yield f"update as {name}", lambda v, n=name: any(t["as_node"] == n for t in v.turns)  # type: ignore[misc]
    yield "update as a child", lambda v: any(t["as_node"] in v.holders for t in v.turns)
    for letter in "abcdef":
        yield f"update as node {letter}", lambda v, n=letter: any(t["as_node"] == n for t in v.turns)  # type: ignore[misc]


FEATURES: dict[str, Test] = dict(_features())


def drawn_features(case: dict[str, Any]) -> set[str]:
    """The features that a case draws."""
    view = View(case)
    return {name for name, test in FEATURES.items() if test(view)}
