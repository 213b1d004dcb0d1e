"""Runs leave no cycles of references: with many runs at a time, the collector took half of the processor time."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typing_extensions import TypedDict

from graphd.checkpoint.memory import InMemorySaver
from graphd.graph import START, StateGraph
from graphd.types import Command, interrupt


class State(TypedDict):
    n: int


def add_one(state: State) -> State:
    return {"n": state["n"] + 1}


async def aadd_one(state: State) -> State:
    await asyncio.sleep(0)
    return {"n": state["n"] + 1}


def ask(state: State) -> State:
    return {"n": interrupt("how many?")}


def build(node: Callable[..., Any], **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(**options)


def invoke(graph: Any) -> None:
    graph.invoke({"n": 1})


def stream(graph: Any) -> None:
    list(graph.stream({"n": 1}, stream_mode=["values", "updates", "tasks"]))


def ainvoke(graph: Any) -> None:
    asyncio.run(graph.ainvoke({"n": 1}))


def answer(graph: Any) -> None:
    config = {"configurable": {"thread_id": str(id(object()))}}
    graph.invoke({"n": 1}, config)
    graph.invoke(Command(resume=3), config)


@contextmanager
def garbage() -> Iterator[list[Any]]:
    """What only the collector finds of the block. What threads of other tests let go meanwhile is not of it."""
    gc.collect()
    gc.freeze()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(
    ("node", "call"),
    [(add_one, invoke), (add_one, stream), (aadd_one, invoke), (aadd_one, ainvoke), (ask, answer)],
    ids=["invoke", "stream", "coroutine", "ainvoke", "question"],
)
def test_runs_leave_no_cycles(node: Callable[..., Any], call: Callable[[Any], None]) -> None:
    runs = 20
    graph = build(node, checkpointer=InMemorySaver() if call is answer else None)
    for _ in range(3):
        call(graph)  # what is made once
    with garbage() as found:
        for _ in range(runs):
            call(graph)
        gc.collect()
        kinds = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in found)
    left = {kind: n for kind, n in kinds.items() if kind.startswith("graphd.") and n >= runs}
    assert left == {}, "objects of each run were in a cycle"
