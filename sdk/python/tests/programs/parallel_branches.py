"""Branches: what runs side by side, waits for all, or waits for the slowest when it is deferred."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

out: list[Any] = []


class Dinner(TypedDict):
    log: Annotated[list[str], operator.add]


def note(text: str) -> Any:
    return lambda state: {"log": [f"{text} after {len(state['log'])}"]}


def add_nodes(*names: str, deferred: str = "") -> StateGraph:
    builder = StateGraph(Dinner)
    for name in names:
        builder.add_node(name, note(name), defer=name == deferred)
    return builder


def run(label: str, builder: StateGraph) -> None:
    graph = builder.compile()
    out.append([label, graph.invoke({"log": []})["log"]])
    steps: list[list[str]] = []
    for task in graph.stream({"log": []}, stream_mode="debug"):
        if task["type"] == "task":
            steps.extend([] for _ in range(task["step"] - len(steps)))
            steps[-1].append(task["payload"]["name"])
    out.append([sorted(step) for step in steps])


courses = ("shop", "soup", "bake", "ice", "chill", "serve")

builder = add_nodes("shop", "soup", "salad", "serve")
builder.add_edge(START, "shop")
builder.add_edge("shop", "soup")
builder.add_edge("shop", "salad")
builder.add_edge("soup", "serve")
builder.add_edge("salad", "serve")
builder.add_edge("serve", END)
run("a fan out and in", builder)

for label, deferred in (("the short branch serves first", ""), ("served once", "serve")):
    builder = add_nodes(*courses, deferred=deferred)
    builder.add_edge(START, "shop")
    builder.add_edge("shop", "soup")
    builder.add_edge("shop", "bake")
    builder.add_edge("bake", "ice")
    builder.add_edge("ice", "chill")
    builder.add_edge("soup", "serve")
    builder.add_edge("chill", "serve")
    run(label, builder)

builder = add_nodes(*courses)
builder.add_edge(START, "shop")
builder.add_edge("shop", "soup")
builder.add_sequence([("mix", note("mix")), ("rest", note("rest"))])
builder.add_edge("shop", "mix")
builder.add_edge("shop", "bake")
builder.add_edge("bake", "ice")
builder.add_edge("ice", "chill")
builder.add_edge(["soup", "rest", "chill"], "serve")
run("a join of three lengths", builder)

builder = add_nodes("left", "right")
builder.add_edge(START, "left")
builder.add_edge(START, "right")
run("two entries", builder)
