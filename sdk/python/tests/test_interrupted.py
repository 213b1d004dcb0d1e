"""What streams show of tasks that wait for people, in graphs inside of graphs."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.types import Command


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def build(server: DevServer, name: str, persistence: bool | None, *, called: bool) -> Any:
    """A graph whose node "sub" is, or calls, a graph that asks."""

    def ask(state: State) -> dict[str, Any]:
        return {"log": ["ask", interrupt("q")]}

    child = StateGraph(State).add_node("one", lambda _: {"log": ["one"]}).add_node("ask", ask)
    inner = child.add_edge(START, "one").add_edge("one", "ask").compile(checkpointer=persistence, name=f"{name}-inner")

    def call(state: State) -> Any:
        return inner.invoke(state)

    outer = StateGraph(State).add_node("sub", call if called else inner).add_edge(START, "sub")
    return outer.compile(InMemorySaver(server=server.address), name=name)


def node_of(namespace: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(level.partition(":")[0] for level in namespace)


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("persistence", [False, None, True])
def test_values_of_a_subgraph_that_asks(server: DevServer, persistence: bool | None, called: bool) -> None:
    name = f"asks-values-{persistence}-{called}"
    graph = build(server, name, persistence, called=called)
    config = {"configurable": {"thread_id": name}}
    options = {"stream_mode": "values", "subgraphs": True}
    seen = [(node_of(at), item) for at, item in graph.stream({"log": ["in"]}, config, **options)]
    shown = [(at, item["log"], [i.value for i in item.get("__interrupt__", ())]) for at, item in seen]
    assert shown == [
        ((), ["in"], []),
        (("sub",), ["in"], []),
        (("sub",), ["in", "one"], []),
        (("sub",), ["in", "one"], ["q"]),
        ((), ["in"], ["q"]),
    ]
    again = [(node_of(at), item["log"]) for at, item in graph.stream(Command(resume="A"), config, **options)]
    done = ["in", "one", "ask", "A"]
    assert again[-2:] == [(("sub",), done), ((), ["in", *done])]
    assert ((("sub",), ["in"]) in again) is (persistence is False), "without checkpoints it begins anew"


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("persistence", [False, None, True])
def test_a_task_that_asks_has_a_result(server: DevServer, persistence: bool | None, called: bool) -> None:
    name = f"asks-tasks-{persistence}-{called}"
    graph = build(server, name, persistence, called=called)
    for mode in ("tasks", "debug"):
        config = {"configurable": {"thread_id": f"{name}-{mode}"}}
        seen = list(graph.stream({"log": ["in"]}, config, stream_mode=mode, subgraphs=True))
        tasks = [item if mode == "tasks" else item["payload"] for _, item in seen]
        results = [task for task in tasks if task.get("interrupts") and "error" in task]
        asked = [(t["name"], t["error"], t["result"], [i["value"] for i in t["interrupts"]]) for t in results]
        assert asked == [("ask", None, {}, ["q"]), ("sub", None, {}, ["q"])]
        assert set(results[0]["interrupts"][0]) == {"value", "id", "response_schema"}


def test_a_task_that_still_waits_has_a_result(server: DevServer) -> None:
    def ask(name: str) -> Any:
        return lambda _: {"log": [interrupt(name)]}

    builder = StateGraph(State).add_node("a", ask("a")).add_node("b", ask("b"))
    graph = (
        builder.add_edge(START, "a")
        .add_edge(START, "b")
        .compile(InMemorySaver(server=server.address), name="asks-still")
    )
    config = {"configurable": {"thread_id": "asks-still"}}
    first = results(graph.stream({"log": []}, config, stream_mode="tasks"))
    assert sorted(first) == [("a", ["a"]), ("b", ["b"])]
    asked = {i.value: i.id for i in graph.get_state(config).interrupts}
    assert ("a", []) in results(graph.stream(Command(resume={asked["a"]: "A"}), config, stream_mode="tasks"))
    assert graph.invoke(Command(resume={asked["b"]: "B"}), config) == {"log": ["A", "B"]}


def results(items: Any) -> list[tuple[str, list[Any]]]:
    return [(item["name"], [i["value"] for i in item["interrupts"]]) for item in items if "interrupts" in item]


def test_a_subgraph_that_waits_beside_an_answered_node_shows_its_state(server: DevServer) -> None:
    def ask_inside(state: State) -> dict[str, Any]:
        return {"log": [interrupt("inside?")]}

    def ask_twice(state: State) -> dict[str, Any]:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    inner = StateGraph(State)
    inner.add_node("ask", ask_inside)
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_node("twice", ask_twice)
    outer.add_edge(START, "inner")
    outer.add_edge(START, "twice")
    graph = outer.compile(InMemorySaver(server=server.address), name="waits-beside")
    config = {"configurable": {"thread_id": "beside"}}
    graph.invoke({"log": ["in"]}, config)
    for question in ("first?", "second?"):
        answered = next(i.id for i in graph.get_state(config).interrupts if i.value == question)
        parts = list(graph.stream(Command(resume={answered: "yes"}), config, stream_mode="values", subgraphs=True))
        inside = [value for levels, value in parts if levels]
        assert [set(value) for value in inside] == [{"log"}, {"log", "__interrupt__"}], "as if it had run again"
        assert [value["log"] for value in inside] == [["in"], ["in"]]
