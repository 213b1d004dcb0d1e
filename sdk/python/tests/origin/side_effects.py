"""Seven ways to have a side effect near a question, each started and answered."""

import functools
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []
effects: Counter[str] = Counter()
done: set[str] = set()


class State(TypedDict, total=False):
    result: str


def before(state: State) -> State:
    effects["before"] += 1
    return {"result": interrupt("before?")}


def flagged(state: State) -> State:
    if "flagged" not in done:
        done.add("flagged")
        effects["flagged"] += 1
    return {"result": interrupt("flagged?")}


records: dict[str, str] = {}


def idempotent(state: State) -> State:
    if records.setdefault("order-1", "charged") == "charged":
        effects["idempotent"] = len(records)
    return {"result": interrupt("idempotent?")}


def lazy(state: State) -> State:
    answer = interrupt("lazy?")
    effects["lazy"] += 1
    return {"result": answer}


def catching(state: State) -> State:
    effects["catching"] += 1
    try:
        answer = interrupt("catching?")
    except Exception:
        answer = "swallowed"
    return {"result": answer}


def retrying(state: State) -> State:
    for _ in range(3):
        effects["retrying"] += 1
        try:
            return {"result": interrupt("retrying?")}
        except Exception:
            continue
    return {"result": "gave up after 3"}


def timed(node: Callable[[State], State]) -> Callable[[State], State]:
    @functools.wraps(node)
    def timed_node(state: State) -> State:
        began = time.monotonic()
        try:
            return node(state)
        finally:
            effects["timed"] += int(time.monotonic() >= began)

    return timed_node


@timed
def measured(state: State) -> State:
    return {"result": interrupt("measured?")}


def play(node: Callable[[State], State]) -> None:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": node.__name__}}
    effects.clear()
    passes = []
    result = graph.invoke({"result": ""}, config)
    passes.append([[q.value for q in result.get("__interrupt__", ())], dict(effects)])
    if "__interrupt__" in result:
        result = graph.invoke(Command(resume="approved"), config)
        passes.append([[q.value for q in result.get("__interrupt__", ())], dict(effects)])
    out.append({"node": node.__name__, "passes": passes, "result": result["result"]})


for node in (before, flagged, idempotent, lazy, catching, retrying, measured):
    play(node)
