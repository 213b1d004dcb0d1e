"""A worker of the tests of moves: runs steps, asks, and records which process ran each step."""

from __future__ import annotations

import operator
import os
import time
from typing import Annotated, Any, TypedDict

from graphd import END, START, StateGraph, interrupt

name = os.environ["MOVES_NAME"]
ledger = os.open(os.environ["MOVES_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class State(TypedDict):
    steps: int
    pace: float
    log: Annotated[list[str], operator.add]


def step(state: State) -> dict[str, Any]:
    os.write(ledger, f"{name}\n".encode())
    time.sleep(state["pace"])
    return {"log": [name]}


def next_node(state: State) -> str:
    return "step" if len(state["log"]) < state["steps"] else "ask"


def ask(state: State) -> dict[str, Any]:
    return {"log": [f"{interrupt('go home?')}@{name}"]}


if __name__ == "__main__":
    builder = StateGraph(State).add_node("step", step).add_node("ask", ask)
    builder.add_edge(START, "step").add_edge("ask", END)
    builder.add_conditional_edges("step", next_node, ["step", "ask"])
    builder.compile(server=os.environ["MOVES_SERVER"], name="walk").serve()
