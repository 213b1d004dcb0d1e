"""How many tasks a worker takes at the same time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from typing_extensions import TypedDict

from graphd import WorkerLimits
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.graph import END, START, StateGraph
from graphd.worker.capacity import Capacity


class State(TypedDict):
    n: int


def test_each_coroutine_adds_a_slot_in_steps() -> None:
    capacity = Capacity(WorkerLimits(threads=16, coroutines=100))
    assert capacity.current_credit() == ws.Credit(total_slots=16, revision=1)
    second, fourth = ws.Credit(total_slots=18, revision=2), ws.Credit(total_slots=20, revision=3)
    assert [capacity.begin_without_thread(1) for _ in range(4)] == [None, second, None, fourth]
    assert capacity.change_blocked(+1) == ws.Credit(total_slots=21, revision=4)
    assert capacity.threads == 17
    assert capacity.change_blocked(-1) == ws.Credit(total_slots=20, revision=5)


def test_slots_are_taken_back_when_many_coroutines_have_ended() -> None:
    capacity = Capacity(WorkerLimits(threads=8, coroutines=100))
    for _ in range(10):
        capacity.begin_without_thread(1)
    assert capacity.current_credit().total_slots == 18
    assert [capacity.end_without_thread(1) for _ in range(7)] == [None] * 7
    credit = capacity.end_without_thread(1)
    assert credit is not None and credit.total_slots == 10


@pytest.mark.parametrize(
    ("limits", "size", "slots"),
    [
        (WorkerLimits(threads=8, coroutines=3), 1, 11),
        (WorkerLimits(threads=8, coroutines=100, coroutine_bytes=50), 10, 13),
        (WorkerLimits(threads=8, coroutines=100, coroutine_bytes=5), 10, 8),
    ],
)
def test_coroutines_are_bounded_by_number_and_bytes(limits: WorkerLimits, size: int, slots: int) -> None:
    capacity = Capacity(limits)
    for _ in range(20):
        capacity.begin_without_thread(size)
    assert capacity.current_credit().total_slots == slots
    for _ in range(20):
        capacity.end_without_thread(size)
    assert capacity.current_credit().total_slots == 8


@pytest.mark.parametrize("given", [0, -1, 1.5, "8", True, None])
@pytest.mark.parametrize("name", ["threads", "coroutines", "coroutine_bytes"])
def test_a_limit_is_a_whole_number(name: str, given: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is .*; want a whole number, 1 or more"):
        WorkerLimits(**{name: given})


def test_a_worker_may_keep_no_values() -> None:
    assert WorkerLimits(kept_bytes=0).kept_bytes == 0
    with pytest.raises(ValueError, match="kept_bytes is -1; want a whole number, 0 or more"):
        WorkerLimits(kept_bytes=-1)


def compile_node(node: Any, limits: WorkerLimits) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(worker=limits)


async def test_many_coroutines_run_at_the_same_time() -> None:
    together, here, all_here = 300, 0, asyncio.Event()

    async def node(state: State) -> State:
        nonlocal here
        here += 1
        if here == together:
            all_here.set()
        await all_here.wait()
        return {"n": state["n"] + 1}

    graph = compile_node(node, WorkerLimits(threads=4))
    results = await asyncio.gather(*(graph.ainvoke({"n": i}) for i in range(together)))
    assert [r["n"] for r in results] == list(range(1, together + 1))


async def test_plain_functions_have_no_more_threads_than_they_may() -> None:
    lock, here, most = threading.Lock(), 0, 0
    full = threading.Barrier(2, timeout=60)  # two at a time, so that each waits for another one

    def node(state: State) -> State:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
        full.wait()
        with lock:
            here -= 1
        return {"n": state["n"]}

    graph = compile_node(node, WorkerLimits(threads=2))
    await asyncio.gather(*(graph.ainvoke({"n": i}) for i in range(12)))
    assert most == 2
