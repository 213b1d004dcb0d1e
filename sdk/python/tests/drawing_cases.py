"""Graphs to be drawn, by graphd or by LangGraph."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class State(TypedDict):
    a: str


def step(state: State) -> dict[str, Any]:
    return {}


def graphs(library: Any) -> dict[str, Any]:
    """The graphs by name; ``library`` has StateGraph, START, END, Command and Send."""
    start, end = library.START, library.END

    def builder(*nodes: str, **edges: Any) -> Any:
        made = library.StateGraph(State)
        for name in nodes:
            made.add_node(name, step)
        return made

    chain = builder("one", "two")
    chain.add_edge(start, "one").add_edge("one", "two").add_edge("two", end)

    open_end = builder("one", "two")
    open_end.add_edge(start, "one").add_edge("one", "two")

    def route(state: State) -> str:
        return "one"

    mapped = builder("pick", "one", "two")
    mapped.add_edge(start, "pick").add_conditional_edges("pick", route, {"yes": "one", "no": "two", "stop": end})
    mapped.add_edge("one", end).add_edge("two", "pick")

    listed = builder("pick", "one", "two")
    listed.add_edge(start, "pick").add_conditional_edges("pick", route, ["one", "two"])
    listed.add_edge("one", end).add_edge("two", end)

    def typed_route(state: State) -> Literal["one", "two"]:
        return "one"

    typed = builder("pick", "one", "two")
    typed.add_edge(start, "pick").add_conditional_edges("pick", typed_route)
    typed.add_edge("one", end).add_edge("two", end)

    anywhere = builder("pick", "one", "two")
    anywhere.add_edge(start, "pick").add_conditional_edges("pick", route)

    entry = builder("one", "two")
    entry.add_conditional_edges(start, route, {"one": "one", "two": "two"})
    entry.add_edge("one", end).add_edge("two", end)

    join = builder("one", "two", "both")
    join.add_edge(start, "one").add_edge(start, "two").add_edge(["one", "two"], "both").add_edge("both", end)

    def go(state: State) -> Any:
        return library.Command(goto="one")

    command = library.StateGraph(State)
    command.add_node("pick", go, destinations=("one", "two")).add_node("one", step).add_node("two", step)
    command.add_edge(start, "pick").add_edge("one", end).add_edge("two", end)

    labelled = library.StateGraph(State)
    labelled.add_node("pick", go, destinations={"one": "if small", "two": "if large"})
    labelled.add_node("one", step).add_node("two", step)
    labelled.add_edge(start, "pick").add_edge("one", end).add_edge("two", end)

    described = library.StateGraph(State)
    described.add_node("one", step, metadata={"team": "billing", "level": 2}).add_edge(start, "one")

    strange = builder("my node", "größe", "a-b.c")
    strange.add_edge(start, "my node").add_edge("my node", "größe").add_edge("größe", "a-b.c")

    inner = builder("deep", "deeper")
    inner.add_edge(start, "deep").add_edge("deep", "deeper").add_edge("deeper", end)
    nested = builder("before")
    nested.add_node("inner", inner.compile()).add_edge(start, "before").add_edge("before", "inner").add_edge(
        "inner", end
    )

    branching = builder("left", "right")
    branching.add_conditional_edges(start, route, ["left", "right"]).add_edge("left", end).add_edge("right", end)
    outer = builder("after")
    outer.add_node("fork", branching.compile()).add_edge(start, "fork").add_edge("fork", "after").add_edge("after", end)
    deepest = builder("last")
    deepest.add_node("outer", outer.compile()).add_edge(start, "outer").add_edge("outer", "last").add_edge("last", end)

    deferred = library.StateGraph(State)
    deferred.add_node("one", step).add_node("late", step, defer=True)
    deferred.add_edge(start, "one").add_edge("one", "late").add_edge("late", end)

    retry = builder("try", "done")
    retry.add_edge(start, "try").add_conditional_edges("try", route, {"again": "try", "done": "done"})

    cycle = builder("a", "b")
    cycle.add_edge(start, "a").add_edge("a", "b").add_edge("b", "a")

    alone = builder("one", "nobody")
    alone.add_edge(start, "one")

    both = builder("x", "y", "late", "z")
    both.add_edge(start, "x").add_edge(start, "y").add_edge(["x", "y"], "z").add_edge("x", "late").add_edge("late", "z")

    def defer(*nodes: str) -> Any:
        made = library.StateGraph(State)
        for name in ("one", "two", "both", "more"):
            made.add_node(name, step, defer=name in nodes)
        made.add_edge(start, "one").add_edge(start, "two").add_edge(["one", "two"], "both").add_edge("two", "more")
        return made.compile()

    twice = builder("pick", "one", "two")
    twice.add_edge(start, "pick").add_edge("pick", "one").add_edge("pick", "two")
    twice.add_conditional_edges("pick", route, {"yes": "one"})

    def handle(state: State) -> dict[str, Any]:
        return {}

    handled = library.StateGraph(State)
    handled.add_node("one", step, error_handler=handle).add_node("two", step)
    handled.add_edge(start, "one").add_edge("one", "two")

    wide = library.StateGraph(State)
    wide.add_node("pick", go, destinations={"one": "a label of quite a few words, more than fit into a single row"})
    wide.add_node("one", step, metadata={"list": ["x", "y"], "odd": {"no": 1}, "sign": "a<b & [c] #1"})
    wide.add_edge(start, "pick")

    built = {
        "retry": retry.compile(),
        "cycle": cycle.compile(),
        "alone": alone.compile(),
        "join and edge": both.compile(),
        "join of a deferred node": defer("one"),
        "deferred join": defer("both"),
        "deferred join of a deferred node": defer("one", "both"),
        "edge and branch": twice.compile(),
        "error handler": handled.compile(),
        "long label": wide.compile(),
        "chain": chain.compile(),
        "open end": open_end.compile(),
        "mapped branch": mapped.compile(),
        "listed branch": listed.compile(),
        "typed branch": typed.compile(),
        "branch to anywhere": anywhere.compile(),
        "conditional entry": entry.compile(),
        "join": join.compile(),
        "command": command.compile(),
        "labelled command": labelled.compile(),
        "metadata": described.compile(),
        "strange names": strange.compile(),
        "nested": nested.compile(),
        "nested twice": deepest.compile(),
        "deferred": deferred.compile(),
        "breakpoints": chain.compile(interrupt_before=["two"], interrupt_after=["one"]),
    }
    return built


def drawings(library: Any) -> dict[str, str]:
    """Each graph as Mermaid text, closed and with its subgraphs opened."""
    found = {}
    for name, graph in graphs(library).items():
        for title, xray in (("closed", False), ("one level", 1), ("open", True)):
            found[f"{name}, {title}"] = graph.get_graph(xray=xray).draw_mermaid()
        found[f"{name}, plain"] = graph.get_graph().draw_mermaid(with_styles=False)
    return found
