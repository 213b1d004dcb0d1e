"""Reducers: how the updates of nodes and the state become the next state."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Overwrite

out: list[Any] = []


def keep_best(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in sorted({*left, *right})}


class Contest(TypedDict, total=False):
    round: int
    points: Annotated[int, operator.add]
    log: Annotated[list[str], operator.add]
    best: Annotated[dict[str, int], keep_best]
    messages: Annotated[list[AnyMessage], add_messages]


def jump(state: Contest) -> Contest:
    said = [AIMessage("Ada jumps", id="jump"), HumanMessage("hurray", id="crowd")]
    return {"round": 1, "points": 7, "log": ["jump"], "best": {"ada": 7, "bo": 2}, "messages": said}


def measure(state: Contest) -> Contest:
    corrected = [AIMessage(f"Ada jumps {state['points']} metres", id="jump")]
    return {"points": -2, "log": [f"measured after {len(state['log'])}"], "best": {"bo": 9}, "messages": corrected}


def restart(state: Contest) -> dict[str, Any]:
    return {"points": Overwrite(100), "log": Overwrite([f"a new list in place of {len(state['log'])}"]), "round": 2}


builder = StateGraph(Contest)
for name, node in [("jump", jump), ("measure", measure), ("restart", restart)]:
    builder.add_node(name, node)
builder.add_edge(START, "jump")
builder.add_edge("jump", "measure")
builder.add_edge("measure", "restart")
builder.add_edge("restart", END)
graph = builder.compile()


def show(state: Any) -> dict[str, Any]:
    return {**state, "messages": [[m.type, m.content] for m in state.get("messages", [])]}


for given in ({"points": 1}, {"points": 5, "log": ["begun"], "best": {"ada": 8}, "messages": ("user", "go!")}):
    for state in graph.stream(given, stream_mode="values"):
        out.append(show(state))

# Two nodes at once: a reducer takes both updates, a plain value takes one.
for key, values in (("points", [3, 4]), ("log", [["left"], ["right"]]), ("round", [1, 2])):
    builder = StateGraph(Contest)
    for name, value in zip(("left", "right"), values, strict=True):
        builder.add_node(name, lambda state, key=key, value=value: {key: value})
        builder.add_edge(START, name)
    try:
        out.append([key, builder.compile().invoke({"points": 10})])
    except InvalidUpdateError:
        out.append([key, "takes one value in a step"])
