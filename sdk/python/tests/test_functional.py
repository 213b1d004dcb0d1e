"""What entrypoints and tasks do beside what programs for LangGraph see; those are in tests/functional."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys
import threading
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graphd import START, MessagesState, StateGraph, memo
from graphd.cache.memory import InMemoryCache
from graphd.checkpoint.memory import InMemorySaver
from graphd.codec import loads
from graphd.config import get_stream_writer
from graphd.dev import DevServer
from graphd.errors import InvalidUpdateError, LimitExceededError, NodeTimeoutError
from graphd.func import entrypoint, task
from graphd.func.timeout import find_time_left
from graphd.messages import AIMessage
from graphd.runtime import get_runtime
from graphd.runtime.task import required_task
from graphd.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy, interrupt

QUICK = RetryPolicy(initial_interval=0.01, jitter=False)


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def kept(server: DevServer) -> InMemorySaver:
    return InMemorySaver(server=server.address)


def test_a_retry_of_the_entrypoint_does_not_repeat_finished_tasks(server: DevServer) -> None:
    ran: list[str] = []

    @task
    def work(x: int) -> int:
        ran.append("work")
        return x

    @entrypoint(kept(server), name="func-retry", retry_policy=QUICK)
    def flow(x: int) -> int:
        result = work(x).result()
        ran.append("flow")
        if ran.count("flow") < 3:
            raise ConnectionError("again")
        return result

    assert flow.invoke(1, config("func-retry-1")) == 1
    assert ran == ["work", "flow", "flow", "flow"]


def test_a_retry_of_a_task_does_not_repeat_what_it_has_recorded(server: DevServer) -> None:
    ran: list[str] = []

    @task
    def inner(x: int) -> int:
        ran.append("inner")
        return x

    @task(retry_policy=QUICK)
    def outer(x: int) -> list[Any]:
        found = [inner(x).result(), memo("charge", lambda: ran.append("charge") or "receipt"), interrupt("sure?")]
        ran.append("outer")
        if ran.count("outer") < 2:
            raise ConnectionError("again")
        return [*found, get_runtime().execution_info.node_attempt]  # type: ignore[union-attr]

    @entrypoint(kept(server), name="func-retry-task")
    def flow(x: int) -> Any:
        return outer(x).result()

    flow.invoke(1, config("func-retry-task-1"))
    assert flow.invoke(Command(resume="yes"), config("func-retry-task-1")) == [1, "receipt", "yes", 2]
    assert ran == ["inner", "charge", "outer", "outer"]


def test_questions_of_tasks_that_run_side_by_side_come_together_in_order(server: DevServer) -> None:
    later = threading.Event()
    ran: list[str] = []

    @task
    def ask(question: str) -> Any:
        if question == "first":
            later.wait(30)
        else:
            later.set()
        answer = interrupt(question)
        ran.append(question)
        return answer

    @entrypoint(kept(server), name="func-parallel")
    def flow(x: int) -> Any:
        return [f.result() for f in [ask("first"), ask("second")]]

    at = config("func-parallel-1")
    asked = flow.invoke(1, at)["__interrupt__"]
    assert [q.value for q in asked] == ["first", "second"]
    assert flow.invoke(Command(resume={asked[1].id: 2, asked[0].id: 1}), at) == [1, 2]
    assert sorted(ran) == ["first", "second"]


def test_items_of_a_task_are_not_muted_by_what_another_one_repeats(server: DevServer) -> None:
    @task
    def ask(x: int) -> Any:
        get_stream_writer()(f"asks {x}")
        return interrupt(x)

    @task
    def tell(x: int) -> int:
        get_stream_writer()(f"tells {x}")
        return x

    @entrypoint(kept(server), name="func-muted")
    def flow(x: int) -> Any:
        first = ask(1).result()
        return [first, tell(2).result(), ask(3).result()]

    at = config("func-muted-1")
    assert list(flow.stream(1, at, stream_mode="custom")) == ["asks 1"]
    assert list(flow.stream(Command(resume="a"), at, stream_mode="custom")) == ["tells 2", "asks 3"]
    assert list(flow.stream(Command(resume="b"), at, stream_mode="custom")) == []


@dataclasses.dataclass
class Receipt:
    number: int


def test_results_have_the_types_of_the_annotations_on_every_pass(server: DevServer) -> None:
    seen: list[Any] = []

    @task
    def pay(x: int) -> Receipt:
        return Receipt(x)

    @task
    def guess(x: int):  # type: ignore[no-untyped-def]
        return {"messages": [AIMessage("hm", id="1")], "pair": (1, 2), "receipt": Receipt(x)}

    @entrypoint(kept(server), name="func-types")
    def flow(receipt: Receipt, *, previous: Receipt | None = None) -> Receipt:
        guessed = guess(3).result()
        seen.append([receipt, previous, pay(2).result(), *(m.content for m in guessed.pop("messages")), guessed])
        interrupt("go on?")
        return Receipt(9)

    at = config("func-types-1")
    flow.invoke(Receipt(1), at)
    assert flow.invoke(Command(resume="yes"), at) == Receipt(9)
    flow.invoke(Receipt(4), at)
    assert seen[0] == seen[1] == [Receipt(1), None, Receipt(2), "hm", {"pair": [1, 2], "receipt": {"number": 3}}]
    assert seen[2][:2] == [Receipt(4), Receipt(9)]


def test_a_result_without_a_json_form_names_the_task(server: DevServer) -> None:
    @task
    def broken(x: int) -> Any:
        return object()

    @entrypoint(kept(server), name="func-unsendable")
    def flow(x: int) -> Any:
        return broken(x).result()

    with pytest.raises(TypeError, match="task 'broken': the result can't be stored: object has no JSON form"):
        flow.invoke(1, config("func-unsendable-1"))


def test_a_result_that_is_larger_than_an_event_is_kept_and_not_shown(server: DevServer) -> None:
    size = (1 << 20) - 50

    @task
    def large(x: int) -> str:
        return "x" * size

    @entrypoint(kept(server), name="func-large")
    def flow(x: int) -> int:
        return len(large(x).result())

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        items = list(flow.stream(1, config("func-large-1"), stream_mode=["updates", "tasks"]))
    assert ("updates", {"flow": size}) in items
    assert not any("large" in item for mode, item in items if mode == "updates")
    assert [str(w.message) for w in told] == [
        "the result of task 'large' is left out: it is larger than an event may be"
    ]


def test_a_result_that_the_server_does_not_take_names_the_task(server: DevServer) -> None:
    @task
    def large(x: int) -> str:
        return "x" * (1 << 20)

    @entrypoint(kept(server), name="func-too-large")
    def flow(x: int) -> int:
        return len(large(x).result())

    with pytest.raises(LimitExceededError, match=r"the result of task 'large' can't be stored: .*max-payload"):
        flow.invoke(1, config("func-too-large-1"))


def test_arguments_without_a_json_form_are_not_shown(server: DevServer) -> None:
    @task
    def call(client: Any) -> int:
        return 1

    @entrypoint(kept(server), name="func-client")
    def flow(x: int) -> int:
        return call(object()).result()

    items = [i for i in flow.stream(1, config("func-client-1"), stream_mode="tasks") if i["name"] == "call"]
    assert [i.get("input", "none") for i in items] == [None, "none"]


async def test_a_silent_task_ends(server: DevServer) -> None:
    waiting = asyncio.Event()

    @task(timeout=TimeoutPolicy(idle_timeout=0.05))
    async def silent(x: int) -> None:
        await waiting.wait()

    @entrypoint(kept(server), name="func-silent")
    async def flow(x: int) -> Any:
        try:
            await silent(x)
        except NodeTimeoutError as error:
            return [error.node, error.kind, error.idle_timeout]

    assert await flow.ainvoke(1, config("func-silent-1")) == ["silent", "idle", 0.05]


async def test_what_puts_off_the_idle_timeout_of_a_task(server: DevServer) -> None:
    @task
    async def inner(x: int) -> int:
        return x

    @task(timeout=TimeoutPolicy(idle_timeout=60))
    async def busy(x: int) -> list[str]:
        found = []
        for name, act in {
            "heartbeat": get_runtime().heartbeat,
            "writer": lambda: get_stream_writer()("item"),
            "memo": lambda: memo("key", lambda: 1),
            "task": lambda: inner(x),
            "nothing": lambda: None,
        }.items():
            at_hand = required_task("a test")
            at_hand.progressed = 0
            act()
            found += [name] if at_hand.progressed > 0 else []
        return found

    @entrypoint(kept(server), name="func-busy")
    async def flow(x: int) -> Any:
        return await busy(x)

    assert await flow.ainvoke(1, config("func-busy-1")) == ["heartbeat", "writer", "memo", "task"]


def test_the_time_that_a_task_has_left() -> None:
    both = TimeoutPolicy(run_timeout=timedelta(seconds=10), idle_timeout=4)
    assert find_time_left(both, "t", begun=100, progressed=100, now=101) == 3
    assert find_time_left(both, "t", begun=100, progressed=108, now=109) == 1
    assert find_time_left(TimeoutPolicy(idle_timeout=4), "t", begun=100, progressed=200, now=201) == 3
    for progressed, now, kind in ((100, 104, "idle"), (109, 110, "run")):
        with pytest.raises(NodeTimeoutError) as raised:
            find_time_left(both, "t", begun=100, progressed=progressed, now=now)
        assert (raised.value.kind, raised.value.elapsed) == (kind, now - 100)


async def test_a_failure_ends_async_tasks_that_run(server: DevServer) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @task
    async def endless(x: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @entrypoint(kept(server), name="func-cancelled")
    async def flow(x: int) -> None:
        endless(x)
        await begun.wait()
        raise ZeroDivisionError("over")

    with pytest.raises(ZeroDivisionError):
        await flow.ainvoke(1, config("func-cancelled-1"))
    assert ended.is_set()


def test_more_tasks_than_threads(server: DevServer) -> None:
    @task
    def inner(x: int) -> int:
        return x

    @task
    def outer(x: int) -> int:
        return inner(x).result()

    @entrypoint(kept(server), name="func-many")
    def flow(most: int) -> int:
        return sum(f.result() for f in [outer(n) for n in range(most)])

    assert flow.invoke(100, config("func-many-1") | {"max_concurrency": 2}) == sum(range(100))


def test_tasks_of_one_name_are_told_apart_by_their_order(server: DevServer) -> None:
    """A task of another name that comes or goes does not move the results of the others."""
    ran: list[str] = []
    order = [["a", "b"], ["c", "a", "b"]]
    tasks = {n: task(lambda n=n: ran.append(n) or n, name=n) for n in "abc"}  # type: ignore[misc]

    @entrypoint(kept(server), name="func-order")
    def flow(x: int) -> Any:
        found = [tasks[name]().result() for name in order.pop(0)]
        return [*found, interrupt("go on?")]

    at = config("func-order-1")
    flow.invoke(1, at)
    assert flow.invoke(Command(resume="yes"), at) == ["c", "a", "b", "yes"]
    assert ran == ["a", "b", "c"]


def test_methods_and_objects_can_be_tasks(server: DevServer) -> None:
    class Shop:
        def __init__(self, price: int) -> None:
            self.price = price

        @task
        def charge(self, amount: int) -> int:
            return self.price * amount

        def __call__(self, amount: int) -> int:
            return self.price + amount

    shop = Shop(3)
    add, named = task(shop), task(shop.__call__, name="named")

    @entrypoint(kept(server), name="func-methods")
    def flow(x: int) -> Any:
        return [shop.charge(x).result(), add(x).result(), named(x).result()]

    shown = list(flow.stream(2, config("func-methods-1")))
    assert shown == [{"charge": 6}, {"Shop": 5}, {"named": 5}, {"flow": [6, 5, 5]}]


def test_a_command_can_not_update_an_entrypoint(server: DevServer) -> None:
    @entrypoint(kept(server), name="func-command")
    def flow(x: int) -> int:
        return x

    with pytest.raises(InvalidUpdateError, match="an entrypoint has no state"):
        flow.invoke(Command(update={"x": 1}), config("func-command-1"))


@pytest.mark.parametrize("call", [task, entrypoint])
def test_unknown_arguments_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match="unknown arguments: cach"):
        call(cach=1)


def test_a_timeout_needs_an_async_entrypoint() -> None:
    with pytest.raises(ValueError, match="entrypoint 'flow' has a timeout"):

        @entrypoint(timeout=1)
        def flow(x: int) -> int:
            return x


async def test_the_cache_of_tasks_is_shared_by_async_ones(server: DevServer) -> None:
    ran: list[int] = []

    @task(cache_policy=CachePolicy())
    async def slow(x: int) -> AIMessage:
        ran.append(x)
        return AIMessage(str(x), id="1")

    cache = InMemoryCache()

    @entrypoint(kept(server), name="func-cache", cache=cache)
    async def flow(x: int) -> Any:
        return (await slow(x)).content

    assert [await flow.ainvoke(1, config(f"func-cache-{n}")) for n in range(2)] == ["1", "1"]
    await slow.aclear_cache(cache)
    assert await flow.ainvoke(1, config("func-cache-3")) == "1"
    assert ran == [1, 1]


def test_a_question_that_a_task_swallows_is_asked(server: DevServer) -> None:
    @task
    def swallow(x: int) -> Any:
        try:
            return interrupt("sure?")
        except BaseException:
            return "swallowed"

    @entrypoint(kept(server), name="func-swallow")
    def flow(x: int) -> Any:
        return swallow(x).result()

    at = config("func-swallow-1")
    assert [q.value for q in flow.invoke(1, at)["__interrupt__"]] == ["sure?"]
    assert flow.invoke(Command(resume="yes"), at) == "yes"


def test_tasks_of_nodes_show_in_every_stream_of_a_graph(server: DevServer) -> None:
    @task
    def reply(text: str) -> AIMessage:
        return AIMessage(text, id="r1")

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [reply("hi").result()]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(kept(server), name="func-node")
    shown = list(graph.stream({"messages": []}, config("func-node-1"), stream_mode=["messages", "updates"]))
    updates = [item for mode, item in shown if mode == "updates"]
    assert [list(item) for item in updates] == [["reply"], ["node"]]
    assert (updates[0]["reply"].content, updates[0]["reply"].id) == ("hi", "r1")
    messages = [item for mode, item in shown if mode == "messages"]
    assert [(m.content, about["langgraph_node"]) for m, about in messages] == [("hi", "reply")]


WORKER = """
import os, sys
from graphd.func import entrypoint, task
from graphd.types import interrupt

@task
def prepare(x):
    with open(sys.argv[1], "a") as log:
        log.write(f"prepare {x}\\n")
    return x + 1

@task
def ask(x):
    with open(sys.argv[1], "a") as log:
        log.write(f"ask {x}\\n")
    return interrupt({"amount": x})

@entrypoint(server=os.environ["GRAPHD_SERVER"], name="func-killed")
def flow(x):
    return [prepare(x).result(), ask(x).result(), prepare(x + 10).result()]

print("serves", flush=True)
flow.serve()
"""


def test_another_process_answers_what_a_killed_one_has_asked(server: DevServer, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def start() -> subprocess.Popen[str]:
        environment = os.environ | {"GRAPHD_SERVER": server.address}
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(log)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None and worker.stdout.readline() == "serves\n"
        return worker

    @entrypoint(server=server.address, name="func-killed", worker=False)
    def flow(x: int) -> Any:
        raise AssertionError("a client runs no code of its entrypoint")

    at = config("func-killed-1")
    first = start()
    try:
        asked = flow.invoke(1, at)["__interrupt__"]
    finally:
        first.kill()
        first.communicate()
    assert [q.value for q in asked] == [{"amount": 1}]
    second = start()
    try:
        assert list(flow.stream(Command(resume="yes"), at)) == [
            {"ask": "yes"},
            {"prepare": 12},
            {"flow": [2, "yes", 12]},
        ]
    finally:
        second.kill()
        second.communicate()
    assert log.read_text().splitlines() == ["prepare 1", "ask 1", "ask 1", "prepare 11"]
    assert flow.get_state(at).values == [2, "yes", 12]


def test_what_other_clients_see(server: DevServer) -> None:
    """The state of an entrypoint is an object, as that of every graph."""

    @task
    def double(x: int) -> int:
        return x * 2

    @entrypoint(kept(server), name="func-wire")
    def flow(x: int) -> Any:
        return entrypoint.final(value=double(x).result(), save="kept")

    from graphd._gen.v1 import thread_service_pb2 as ts
    from graphd.transport.server import call_unary, server_at

    saver = flow.checkpointer
    flow.invoke(2, config("func-wire-1"))
    state = call_unary(
        server_at(server.address).stubs.threads.GetState, ts.GetStateRequest(thread_id=f"{saver.prefix}func-wire-1")
    )
    assert loads(state.values.json) == {"output": 4, "previous": "kept"}
