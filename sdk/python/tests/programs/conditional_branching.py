"""Conditional edges: the state says which nodes come next."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph

out: list[Any] = []


class Luggage(TypedDict, total=False):
    kilos: int
    fragile: bool
    log: Annotated[list[str], operator.add]


def add(builder: StateGraph, *names: str) -> None:
    for name in names:
        builder.add_node(name, lambda state, name=name: {"log": [name]})


def by_weight(state: Luggage) -> Literal["cabin", "hold", "cargo"]:
    return "cabin" if state["kilos"] <= 8 else "hold" if state["kilos"] <= 30 else "cargo"


def after_hold(state: Luggage) -> list[str]:
    return ["label", "wrap"] if state["fragile"] else ["label"]


def is_heavy(state: Luggage) -> bool:
    return state["kilos"] > 20


def ends_early(state: Luggage) -> str:
    return END if state["kilos"] > 100 else "fly"


builder = StateGraph(Luggage)
add(builder, "cabin", "hold", "cargo", "label", "wrap", "lift", "fly")
builder.add_conditional_edges(START, by_weight)
builder.add_edge("cabin", "fly")
builder.add_conditional_edges("hold", after_hold, ["label", "wrap"])
builder.add_conditional_edges("label", is_heavy, {True: "lift", False: "fly"})
builder.add_edge("lift", "fly")
builder.add_conditional_edges("cargo", ends_early, {"fly": "fly", END: END})
builder.add_edge("fly", END)
graph = builder.compile()

for kilos, fragile in ((5, False), (12, False), (12, True), (28, True), (60, False), (200, False)):
    out.append([kilos, fragile, graph.invoke({"kilos": kilos, "fragile": fragile, "log": []})["log"]])

# A name for each end of a path, and a path of its own for the entry.
builder = StateGraph(Luggage)
add(builder, "belt", "shelf")
builder.set_conditional_entry_point(is_heavy, {True: "belt", False: "shelf"})
builder.set_finish_point("belt")
builder.set_finish_point("shelf")
small = builder.compile()
out.append([small.invoke({"kilos": kilos, "log": []})["log"] for kilos in (1, 50)])


def scan_if_heavy(state: Luggage) -> str:
    return "scan" if state["kilos"] > 3 else END


def seal_if_fragile(state: Luggage) -> str:
    return "seal" if state["fragile"] else END


# Two conditions on one node hold side by side.
builder = StateGraph(Luggage)
add(builder, "check", "scan", "seal")
builder.add_edge(START, "check")
builder.add_conditional_edges("check", scan_if_heavy, ["scan", END])
builder.add_conditional_edges("check", seal_if_fragile, ["seal", END])
both = builder.compile()
for kilos, fragile in ((1, False), (9, False), (1, True), (9, True)):
    out.append(both.invoke({"kilos": kilos, "fragile": fragile, "log": []})["log"])
