"""Graphs that are called inside nodes: results, streams, questions, context."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import pytest

from graphd import amemo
from graphd.checkpoint.memory import InMemorySaver
from graphd.config import get_stream_writer
from graphd.dev import DevServer
from graphd.errors import DroppedQuestions
from graphd.graph import START, StateGraph
from graphd.runtime import Runtime
from graphd.types import Command, interrupt


class Inner(TypedDict):
    words: Annotated[list[str], operator.add]


class Outer(TypedDict):
    seen: Annotated[list[Any], operator.add]


class Context(TypedDict):
    who: str


def first(state: Inner, runtime: Runtime[Context]) -> dict[str, Any]:
    get_stream_writer()("working")
    return {"words": [f"for {(runtime.context or {}).get('who', 'nobody')}"]}


def second(state: Inner) -> dict[str, Any]:
    return {"words": ["second"]}


def ask(state: Inner) -> dict[str, Any]:
    return {"words": [interrupt("sure?")]}


def child(*nodes: Any) -> Any:
    return StateGraph(Inner, Context).add_sequence(nodes).add_edge(START, nodes[0].__name__).compile()


def parent(server: DevServer, node: Any) -> Any:
    builder = StateGraph(Outer, Context).add_node("call", node).add_edge(START, "call")
    return builder.compile(InMemorySaver(server=server.address))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def test_a_stream_shows_what_happens_in_the_called_graph(server: DevServer) -> None:
    inner = child(first, second)

    def call(state: Outer) -> dict[str, Any]:
        return {"seen": list(inner.stream({"words": ["in"]}, stream_mode=["updates", "values", "custom"]))}

    result = parent(server, call).invoke({"seen": []}, config("nested-1"))
    assert [tuple(s) for s in result["seen"]] == [
        ("values", {"words": ["in"]}),
        ("custom", "working"),
        ("updates", {"first": {"words": ["for nobody"]}}),
        ("values", {"words": ["in", "for nobody"]}),
        ("updates", {"second": {"words": ["second"]}}),
        ("values", {"words": ["in", "for nobody", "second"]}),
    ]


def test_an_async_node_streams_too(server: DevServer) -> None:
    inner = child(first, second)

    async def call(state: Outer) -> dict[str, Any]:
        return {"seen": [chunk async for chunk in inner.astream({"words": []})]}

    result = asyncio.run(parent(server, call).ainvoke({"seen": []}, config("nested-2")))
    assert result["seen"] == [{"first": {"words": ["for nobody"]}}, {"second": {"words": ["second"]}}]


def test_two_calls_are_told_apart(server: DevServer) -> None:
    inner = child(second)

    def call(state: Outer) -> dict[str, Any]:
        return {"seen": [*inner.stream({"words": ["a"]}, stream_mode="values"), *inner.stream({"words": ["b"]})]}

    result = parent(server, call).invoke({"seen": []}, config("nested-3"))
    assert result["seen"] == [{"words": ["a"]}, {"words": ["a", "second"]}, {"second": {"words": ["second"]}}]


def test_a_question_below_a_stream_stops_the_node(server: DevServer) -> None:
    inner = child(second, ask)
    shown: list[Any] = []

    def call(state: Outer) -> dict[str, Any]:
        shown.append([])
        for chunk in inner.stream({"words": []}):
            shown[-1].append(chunk)
        return {"seen": ["done"]}

    graph = parent(server, call)
    asked = graph.invoke({"seen": []}, config("nested-4"))
    assert [i.value for i in asked["__interrupt__"]] == ["sure?"]
    assert shown[0][0] == {"second": {"words": ["second"]}}
    assert graph.invoke(Command(resume="yes"), config("nested-4")) == {"seen": ["done"]}
    assert shown[1] == [{"ask": {"words": ["yes"]}}]


def test_a_call_has_the_context_of_its_node_or_its_own(server: DevServer) -> None:
    inner = child(first)

    def call(state: Outer) -> dict[str, Any]:
        own = inner.invoke({"words": []}, context={"who": "me"})
        same = inner.invoke({"words": []})
        return {"seen": [*own["words"], *same["words"]]}

    result = parent(server, call).invoke({"seen": []}, config("nested-5"), context={"who": "you"})
    assert result == {"seen": ["for me", "for you"]}


def test_invoke_gathers_parts(server: DevServer) -> None:
    inner = child(second)

    def call(state: Outer) -> dict[str, Any]:
        return {"seen": inner.invoke({"words": []}, stream_mode="updates")}

    graph = parent(server, call)
    assert graph.invoke({"seen": []}, config("nested-6")) == {"seen": [{"second": {"words": ["second"]}}]}


def test_the_state_of_a_called_graph_can_be_read_and_written(server: DevServer) -> None:
    inner = child(second, ask)

    def call(state: Outer) -> dict[str, Any]:
        return {"seen": inner.invoke({"words": ["in"]})["words"]}

    graph = parent(server, call)
    graph.invoke({"seen": []}, config("nested-7"))
    (task,) = graph.get_state(config("nested-7")).tasks
    assert task.state["configurable"]["checkpoint_ns"] == f"call:{task.id}"
    (task,) = graph.get_state(config("nested-7"), subgraphs=True).tasks
    assert (task.state.values, task.state.next) == ({"words": ["in", "second"]}, ("ask",))
    assert [name for name, _ in graph.get_subgraphs()] == ["call"]
    assert [s.next for s in graph.get_state_history(task.state.config)] == [("ask",)]
    with pytest.warns(DroppedQuestions):
        graph.update_state(task.state.config, {"words": ["by hand"], "unknown": 1})
    asked = graph.invoke(None, config("nested-7"))
    assert [i.value for i in asked["__interrupt__"]] == ["sure?"]
    assert graph.invoke(Command(resume="yes"), config("nested-7")) == {"seen": ["in", "second", "by hand", "yes"]}


def test_a_drawing_shows_called_graphs(server: DevServer) -> None:
    inner = child(second)
    drawn = parent(server, lambda state: inner.invoke({"words": []})).get_graph(xray=True).draw_mermaid()
    assert "call\\3asecond(second)" in drawn


def slowly(state: Inner) -> dict[str, Any]:
    time.sleep(1)
    return {"words": ["late"]}


def test_a_node_may_give_up_on_a_called_graph(server: DevServer) -> None:
    inner = child(slowly)

    async def call(state: Outer) -> dict[str, Any]:
        try:
            return {"seen": (await asyncio.wait_for(inner.ainvoke({"words": []}), 0.1))["words"]}
        except asyncio.TimeoutError:
            return {"seen": ["given up"]}

    async def run() -> Any:
        return await asyncio.wait_for(parent(server, call).ainvoke({"seen": []}, config("nested-8")), 60)

    # asyncio.run ends when all threads have ended: none waits for an answer to the ended node.
    done = threading.Event()
    found: list[Any] = []
    threading.Thread(target=lambda: (found.append(asyncio.run(run())), done.set()), daemon=True).start()
    assert done.wait(60)
    assert found == [{"seen": ["given up"]}]


def test_called_graphs_leave_the_threads_of_the_loop_to_their_nodes(server: DevServer) -> None:
    async def remember(state: Inner) -> dict[str, Any]:
        return {"words": [await amemo("word", lambda: "kept")]}

    inner = child(remember)

    async def call(state: Outer) -> dict[str, Any]:
        results = await asyncio.gather(*(inner.ainvoke({"words": []}) for _ in range(4)))
        return {"seen": [word for result in results for word in result["words"]]}

    async def run() -> Any:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        return await asyncio.wait_for(parent(server, call).ainvoke({"seen": []}, config("nested-9")), 60)

    assert asyncio.run(run()) == {"seen": ["kept"] * 4}


def test_plain_calls_in_threads_of_the_loop_leave_nodes_their_memos(server: DevServer) -> None:
    async def remember(state: Inner) -> dict[str, Any]:
        return {"words": [await amemo("word", lambda: "kept")]}

    inner = child(remember)

    async def call(state: Outer) -> dict[str, Any]:
        results = await asyncio.gather(*(asyncio.to_thread(inner.invoke, {"words": []}) for _ in range(4)))
        return {"seen": [word for result in results for word in result["words"]]}

    async def run() -> Any:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        return await asyncio.wait_for(parent(server, call).ainvoke({"seen": []}, config("nested-10")), 60)

    assert asyncio.run(run()) == {"seen": ["kept"] * 4}


async def test_calls_need_no_thread_of_the_loop(server: DevServer) -> None:
    async def remember(state: Inner) -> dict[str, Any]:
        return {"words": ["a word"]}

    inner, may_end = child(remember), threading.Event()

    async def call(state: Outer) -> dict[str, Any]:
        return {"seen": (await inner.ainvoke({"words": []}))["words"] + [interrupt("more?")]}

    graph = parent(server, call)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    held = loop.run_in_executor(None, may_end.wait, 60)
    try:
        thread = config("nested-11")
        asked = await asyncio.wait_for(graph.ainvoke({"seen": []}, thread), 30)
        assert [question.value for question in asked["__interrupt__"]] == ["more?"]
        assert (await asyncio.wait_for(graph.aget_state(thread), 30)).next
        ended = await asyncio.wait_for(graph.ainvoke(Command(resume="no"), thread), 30)
        assert ended == {"seen": ["a word", "no"]}
    finally:
        may_end.set()
        await held
