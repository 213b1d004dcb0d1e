"""A worker of the chaos test: asks, remembers, and writes down what it did."""

from __future__ import annotations

import faulthandler
import itertools
import json
import logging
import operator
import os
import random
import time
from typing import Annotated, Any, TypedDict, cast

from graphd import END, START, StateGraph, interrupt, memo
from graphd.errors import GraphdError
from graphd.runtime.task import required_task
from graphd.worker.attempt import Attempt

ledger = os.open(os.environ["CHAOS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
count = itertools.count()


def write(kind: str, key: str, value: str) -> None:
    """One line, in one write: processes that share the file don't mix them. A
    process that is killed may leave half a line, so each begins with a new one."""
    attempt = cast(Attempt, required_task("write()").host)
    assignment = attempt.assignment
    line = {
        "kind": kind,
        "key": key,
        "value": value,
        "thread": assignment.thread_id,
        "task": assignment.task_id,
        "lease": assignment.lease.token.hex(),
        "began": attempt.started,
        "time": time.monotonic(),
    }
    os.write(ledger, ("\n" + json.dumps(line) + "\n").encode())


def sleep_randomly() -> None:
    """Gives faults a chance to hit between any two lines."""
    time.sleep(random.random() * 0.1)


def once(key: str) -> str:
    """A side effect that must not be repeated once its value is recorded."""

    def effect() -> str:
        value = f"{key}-{os.getpid()}-{next(count)}"
        write("ran", key, value)
        sleep_randomly()
        return value

    try:
        value = memo(key, effect)
    except GraphdError as error:
        write("refused", key, error.reason or "")
        raise
    write("saw", key, value)
    sleep_randomly()
    return value


def counted(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """A reducer that only the worker knows."""
    return {k: old.get(k, 0) + new.get(k, 0) for k in sorted({*old, *new})}


class State(TypedDict):
    n: int
    round: int
    log: Annotated[list[str], operator.add]
    count: Annotated[dict[str, int], counted]


PART_OF = os.environ.get("CHAOS_PART_OF")
"""The graph of the server that has these nodes. Without it the worker brings its own, with a reducer of its own."""


def visit(kind: str) -> dict[str, Any]:
    return {} if PART_OF else {"count": {kind: 1}}


def ask(state: State, what: str) -> Any:
    return interrupt({"n": state["n"], "round": state.get("round", 0), "ask": what})


def gather(state: State) -> dict[str, Any]:
    opened = once("open")
    name = ask(state, "name")
    sleep_randomly()
    amount = ask(state, "amount")
    charge = once("charge")
    log = [f"open={opened}", f"name={name}", f"amount={amount}", f"charge={charge}"]
    return {"round": state.get("round", 0) + 1, "log": log, **visit("gather")}


def pick(state: State) -> list[str]:
    sleep_randomly()
    return ["desk", "legal", "risk"][: 1 + state["n"] % 3]


def reviewer(who: str) -> Any:
    def review(state: State) -> dict[str, Any]:
        note = once(f"note-{who}")
        said = ask(state, who)
        return {"log": [f"note-{who}={note}", f"{who}={said}"], **visit("review")}

    return review


def settle(state: State) -> dict[str, Any]:
    return {"log": [f"settle={once('settle')}"], **visit("settle")}


def again(state: State) -> str:
    return "gather" if state["round"] <= state["n"] % 2 else END


def graph(server: str) -> Any:
    builder = StateGraph(State).add_node("gather", gather).add_node("settle", settle)
    for who in ("desk", "legal", "risk"):
        builder.add_node(who, reviewer(who))
    builder.add_conditional_edges("gather", pick, ["desk", "legal", "risk"])
    builder.add_conditional_edges("settle", again, ["gather", END])
    if PART_OF:
        return builder.compile(server=server, part_of=PART_OF)
    for who in ("desk", "legal", "risk"):
        builder.add_edge(who, "settle")
    return builder.add_edge(START, "gather").compile(server=server, name="chaos")


if __name__ == "__main__":
    faulthandler.enable()  # the test aborts a worker that does not leave, to see why
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    graph(os.environ["CHAOS_SERVER"]).serve()
