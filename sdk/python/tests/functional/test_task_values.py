"""Arguments and results of tasks, and the values of entrypoints."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest

from graphd import START, MessagesState, StateGraph
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.cache.memory import InMemoryCache
from graphd.checkpoint.memory import InMemorySaver
from graphd.codec import loads
from graphd.dev import DevServer
from graphd.errors import LimitExceededError
from graphd.func import entrypoint, task
from graphd.messages import AIMessage
from graphd.transport.server import call_unary, server_at
from graphd.types import CachePolicy, Command, interrupt


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def kept(server: DevServer) -> InMemorySaver:
    return InMemorySaver(server=server.address)


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


def test_what_other_clients_see(server: DevServer) -> None:
    """The state of an entrypoint is an object, as that of every graph."""

    @task
    def double(x: int) -> int:
        return x * 2

    @entrypoint(kept(server), name="func-wire")
    def flow(x: int) -> Any:
        return entrypoint.final(value=double(x).result(), save="kept")

    saver = flow.checkpointer
    flow.invoke(2, config("func-wire-1"))
    state = call_unary(
        server_at(server.address).stubs.threads.GetState, ts.GetStateRequest(thread_id=f"{saver.prefix}func-wire-1")
    )
    assert loads(state.values.json) == {"output": 4, "previous": "kept"}
