"""Loops: a search ends by itself, by its limit, or in time because it sees the limit."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps

out: list[Any] = []


class Search(TypedDict, total=False):
    goal: int
    low: int
    high: int
    guesses: Annotated[list[int], operator.add]


def guess(state: Search) -> Search:
    return {"guesses": [(state["low"] + state["high"]) // 2]}


def narrow(state: Search) -> Search:
    last = state["guesses"][-1]
    return {"low": last + 1} if last < state["goal"] else {"high": last - 1}


def found(state: Search) -> Literal["narrow", "__end__"]:
    return END if state["guesses"][-1] == state["goal"] else "narrow"


builder = StateGraph(Search)
builder.add_node(guess)
builder.add_node(narrow)
builder.add_edge(START, "guess")
builder.add_conditional_edges("guess", found)
builder.add_edge("narrow", "guess")
graph = builder.compile(checkpointer=InMemorySaver())

for thread, goal, limit in (("short", 50, 4), ("long", 77, 25), ("stopped", 77, 4), ("never", 500, 30)):
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": limit}
    try:
        out.append([thread, graph.invoke({"goal": goal, "low": 1, "high": 100, "guesses": []}, config)["guesses"]])
    except GraphRecursionError as error:
        snapshot = graph.get_state(config)
        out.append([thread, str(error).split(" without")[0], snapshot.values["guesses"], list(snapshot.next)])

# What was stopped goes on with another limit.
out.append(graph.invoke(None, {"configurable": {"thread_id": "stopped"}, "recursion_limit": 50})["guesses"])


class Careful(Search, total=False):
    left: RemainingSteps
    last: IsLastStep


def walk(state: Careful) -> Careful:
    return {"guesses": [state["left"]]}


def goes_on(state: Careful) -> Literal["walk", "rest"]:
    return "walk" if state["left"] > 3 else "rest"


builder = StateGraph(Careful)
builder.add_node(walk)
builder.add_node("rest", lambda state: {"low": state["left"], "high": int(state["last"])})
builder.add_edge(START, "walk")
builder.add_conditional_edges("walk", goes_on)
for limit in (3, 5, 9):
    out.append(builder.compile().invoke({"guesses": []}, {"recursion_limit": limit}))
