"""A worker of the ledger test: has effects, and writes down each before it happens."""

from __future__ import annotations

import itertools
import json
import logging
import operator
import os
import random
import time
from typing import Annotated, Any, TypedDict

from graphd import END, START, StateGraph, memo
from graphd.runtime.task import required_task

name = os.environ["LEDGER_NAME"]
longest = float(os.environ["LEDGER_LONGEST"])
ledger = os.open(os.environ["LEDGER_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
count = itertools.count()


def write(line: dict[str, Any]) -> None:
    os.write(ledger, (json.dumps(line) + "\n").encode())


def pay(what: str) -> str:
    """An effect that must happen once."""
    host: Any = required_task("pay()").host
    task = {"thread": host.assignment.thread_id, "task": host.assignment.task_id, "what": what}

    def effect(idempotency_key: str) -> str:
        value = f"{name}-{next(count)}"
        write({"event": "begin", "value": value, "key": idempotency_key, **task})
        time.sleep(random.random() * longest)
        write({"event": "end", "value": value, "key": idempotency_key, **task})
        return value

    return memo(what, effect)


class State(TypedDict):
    rounds: int
    paid: Annotated[list[str], operator.add]


def payer(node: str) -> Any:
    def act(state: State) -> dict[str, Any]:
        return {"paid": [pay(f"{node}-first"), pay(f"{node}-second")]}

    return act


def close(state: State) -> dict[str, Any]:
    return {"rounds": state["rounds"] - 1, "paid": [pay("close")]}


def again(state: State) -> str:
    return "inner" if state["rounds"] > 0 else END


def graph(server: str) -> Any:
    inner = StateGraph(State).add_node("deep", payer("deep"))
    inner.add_edge(START, "deep").add_edge("deep", END)
    builder = StateGraph(State).add_node("left", payer("left")).add_node("right", payer("right"))
    calls = os.environ["LEDGER_CALLS"] == "yes"
    builder.add_node("inner", inside(inner.compile()) if calls else alone).add_node("close", close)
    builder.add_edge(START, "inner").add_edge("inner", "left").add_edge("inner", "right")
    builder.add_edge(["left", "right"], "close").add_conditional_edges("close", again, ["inner", END])
    return builder.compile(server=server, name="ledger")


def alone(state: State) -> dict[str, Any]:
    return {"paid": [pay(what) for what in ("before", "deep-first", "deep-second", "after")]}


def inside(inner: Any) -> Any:
    """Calls a graph from the code of a node, between two effects."""

    def act(state: State) -> dict[str, Any]:
        before = pay("before")
        called = inner.invoke({"rounds": 0, "paid": []})
        return {"paid": [before, *called["paid"], pay("after")]}

    return act


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    graph(os.environ["LEDGER_SERVER"]).serve()
