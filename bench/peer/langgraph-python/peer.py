"""LangGraph for Python, driven by lines of JSON: see ../README.md."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import operator
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.redis import RedisSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from plain_redis import PlainRedis

LENGTH = 10
TASKS = 100

numbers = itertools.count()


class Chain(TypedDict):
    x: int


class Question(TypedDict, total=False):
    x: int
    answer: str


class Fan(TypedDict, total=False):
    items: list[int]
    done: Annotated[list[int], operator.add]
    sum: int


def add_one(state: dict) -> dict:
    return {"x": state["x"] + 1}


def chain() -> StateGraph:
    builder = StateGraph(Chain)
    names = [f"n{i}" for i in range(LENGTH)]
    for name in names:
        builder.add_node(name, add_one)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    return builder


def question() -> StateGraph:
    builder = StateGraph(Question)
    builder.add_node("a", add_one)
    builder.add_node("ask", lambda state: {"answer": interrupt(state["x"])})
    builder.add_node("z", add_one)
    for source, target in itertools.pairwise([START, "a", "ask", "z", END]):
        builder.add_edge(source, target)
    return builder


def fan() -> StateGraph:
    builder = StateGraph(Fan)
    builder.add_node("split", lambda _: {})
    builder.add_node("work", lambda given: {"done": [given["item"] + 1]})
    builder.add_node("join", lambda state: {"sum": len(state["done"])})
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda state: [Send("work", {"item": i}) for i in state["items"]], ["work"])
    builder.add_edge("work", "join")
    builder.add_edge("join", END)
    return builder


def config() -> dict[str, Any]:
    return {"configurable": {"thread_id": f"py-{os.getpid()}-{next(numbers)}"}, "recursion_limit": 100}


def check(right: bool, out: object) -> None:
    if not right:
        raise RuntimeError(f"wrong result: {out}")


# Every superstep is stored before the next one, as graphd does it.
def run_chain(graph: Any, _: list[float]) -> None:
    out = graph.invoke({"x": 0}, config(), durability="sync")
    check(out == {"x": LENGTH}, out)


def run_question(graph: Any, times: list[float]) -> None:
    thread = config()
    asked = graph.invoke({"x": 0}, thread, durability="sync")
    check(len(asked["__interrupt__"]) == 1, asked)
    began, out = time.perf_counter(), None
    for values in graph.stream(Command(resume="yes"), thread, stream_mode="values", durability="sync"):
        if out is None:
            times.append(time.perf_counter() - began)
        out = values
    check(out == {"x": 2, "answer": "yes"}, out)


def run_fan(graph: Any, _: list[float]) -> None:
    out = graph.invoke({"items": [1] * TASKS}, config(), durability="sync")
    check(out["sum"] == TASKS, out)


WORKLOADS: dict[str, tuple[Callable[[], StateGraph], Callable[[Any, list[float]], None]]] = {
    "W1": (chain, run_chain),
    "W2": (question, run_question),
    "W3": (fan, run_fan),
    "W5": (question, run_question),
}


@contextmanager
def saver(store: str, url: str) -> Iterator[Any]:
    if store == "memory":
        yield InMemorySaver()
    elif store == "sqlite":
        connection = sqlite3.connect(url, check_same_thread=False)
        yield SqliteSaver(connection)
        connection.close()
    else:
        client = PlainRedis.from_url(url, max_connections=1000)
        checkpointer = RedisSaver(redis_client=client)
        checkpointer.checkpoints_index.create = checkpointer.checkpoint_writes_index.create = lambda **_: None
        checkpointer.setup()
        yield checkpointer
        client.close()


def measure(request: dict[str, Any]) -> dict[str, float]:
    build, one = WORKLOADS[request["workload"]]
    times: list[float] = []
    with saver(request["store"], request["url"]) as checkpointer:
        graph = build().compile(checkpointer=checkpointer)
        one(graph, [])
        done, broken = [0] * request["clients"], []
        began = time.perf_counter()

        def client(lane: int) -> None:
            try:
                while again(done[lane]):
                    one(graph, times)
                    done[lane] += 1
            except Exception as error:
                broken.append(error)

        def again(mine: int) -> bool:
            if repeat := request.get("repeat", 0):
                return mine < repeat
            return time.perf_counter() - began < request["seconds"]

        clients = [threading.Thread(target=client, args=(i,)) for i in range(request["clients"])]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        took = time.perf_counter() - began
        if broken:
            raise broken[0]
    times.sort()
    quantile = lambda q: times[int(len(times) * q)] if times else 0.0  # noqa: E731
    return {"rate": sum(done) / took, "p50": quantile(0.5), "p99": quantile(0.99)}


def main() -> None:
    print(json.dumps({"name": "LangGraph", "version": importlib.metadata.version("langgraph")}), flush=True)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = measure(json.loads(line))
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
