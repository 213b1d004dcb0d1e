"""Writing to a state by hand."""

from __future__ import annotations

import operator
import warnings
from typing import Annotated, Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.errors import DroppedQuestions, InvalidUpdateError, NothingToResumeError
from graphd.graph import START, StateGraph
from graphd.types import Command, Send, StateUpdate, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    kind: str


@pytest.fixture
def graph(server: DevServer) -> Any:
    builder = StateGraph(State).add_edge(START, "a").add_edge("w", "z")
    builder.add_node("a", lambda state: {"log": ["a"]})
    builder.add_node("w", lambda state: {"log": [f"w{state['i']}"]})
    builder.add_node("z", lambda state: {"log": ["z"]})
    builder.add_conditional_edges("a", lambda state: [Send("w", {"i": 1}), Send("w", {"i": 2})], ["w"])
    return builder.compile(InMemorySaver(server=server.address))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": f"update-{thread}"}}


def history(graph: Any, thread: str) -> list[Any]:
    return [
        (s.values["log"], s.next, s.metadata["source"], [(t.name, (t.result or {}).get("log")) for t in s.tasks])
        for s in graph.get_state_history(config(thread))
    ]


def test_several_supersteps_of_several_nodes(graph: Any) -> None:
    graph.bulk_update_state(
        config("1"),
        [
            [StateUpdate({"log": ["in"]}, "__input__")],
            [StateUpdate({"log": ["in"]}, "__start__")],
            [StateUpdate({"log": ["A"], "kind": "x"}, "a")],
            [StateUpdate({"log": ["W1"]}, "w"), StateUpdate({"log": ["W2"]}, "w")],
        ],
    )
    assert history(graph, "1") == [
        (["in", "A", "W1", "W2"], ("z",), "update", [("z", None)]),
        (["in", "A"], ("w", "w"), "update", [("w", ["W1"]), ("w", ["W2"])]),
        (["in"], ("a",), "update", [("a", ["A"])]),
        ([], ("__start__",), "input", [("__start__", ["in"])]),
    ]
    assert graph.invoke(None, config("1"))["log"] == ["in", "A", "W1", "W2", "z"]


def test_a_copy_that_is_changed_at_once(graph: Any) -> None:
    graph.invoke({"log": ["in"]}, config("2"))
    sent = next(s for s in graph.get_state_history(config("2")) if s.next == ("w", "w"))
    fork = graph.update_state(sent.config, [({"log": ["one"]}, "w"), ({"log": ["two"]}, "w")], as_node="__copy__")
    assert history(graph, "2")[:2] == [
        (["in", "a", "one", "two"], ("z",), "update", [("z", None)]),
        (["in", "a"], ("w", "w"), "fork", [("w", ["one"]), ("w", ["two"])]),
    ]
    assert graph.invoke(None, fork)["log"] == ["in", "a", "one", "two", "z"]


def test_a_command_goes_where_it_says(graph: Any) -> None:
    graph.update_state(config("3"), Command(update={"log": ["x"]}, goto="z"), as_node="z")
    state = graph.get_state(config("3"))
    assert (state.values["log"], state.next) == (["x"], ("z",))


def test_unknown_keys_are_left_out(graph: Any) -> None:
    graph.update_state(config("4"), {"log": ["x"], "unknown": 1}, as_node="a")
    assert graph.get_state(config("4")).values == {"log": ["x"]}


@pytest.mark.parametrize(
    "updates",
    [
        [StateUpdate({"kind": "1"}, "a"), StateUpdate({"kind": "2"}, "z")],
        [StateUpdate({"kind": "1"}, "nope")],
        [StateUpdate({"kind": "1"}, "__end__")],
        [StateUpdate(None, "__input__"), StateUpdate(None, "a")],
        [StateUpdate(None, None), StateUpdate(None, "a")],
        [StateUpdate({"log": ["x"]}, "a", "no such task")],
        [StateUpdate(["no pair"], "__copy__")],
    ],
)
def test_one_bad_update_refuses_them_all(graph: Any, updates: list[StateUpdate], request: Any) -> None:
    thread = f"5-{request.node.callspec.id}"
    graph.update_state(config(thread), {"log": ["first"]}, as_node="a")
    before = history(graph, thread)
    with pytest.raises(InvalidUpdateError):
        graph.bulk_update_state(config(thread), [[StateUpdate({"log": ["good"]}, "a")], updates])
    assert history(graph, thread) == before


def test_an_update_that_drops_a_question_warns(server: DevServer) -> None:
    builder = StateGraph(State).add_node("ask", lambda state: {"log": [interrupt("?")]}).add_edge(START, "ask")
    asking = builder.compile(InMemorySaver(server=server.address))
    asking.invoke({"log": []}, config("6"))
    with pytest.warns(DroppedQuestions):
        asking.update_state(config("6"), {"log": ["by hand"]}, as_node="ask")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asking.update_state(config("6"), {"log": ["again"]}, as_node="ask")
    assert asking.get_state(config("6")).values["log"] == ["by hand", "again"]


async def test_the_same_for_async_programs(graph: Any) -> None:
    await graph.abulk_update_state(config("7"), [[StateUpdate({"log": ["A"]}, "a")]])
    assert (await graph.aget_state(config("7"))).next == ("w", "w")


def test_an_answer_to_a_question_that_an_update_dropped_is_refused(server: DevServer) -> None:
    """The question of a subgraph whose state was edited is gone; its answer must not vanish with it."""
    inner = StateGraph(State).add_edge(START, "ask")
    inner.add_node("ask", lambda state: {"log": [interrupt("sure?")]})
    outer = StateGraph(State).add_edge(START, "inner")
    outer.add_node("inner", inner.compile())
    graph = outer.compile(InMemorySaver(server=server.address), name="dropped-below")
    graph.invoke({"log": []}, config("below"))
    below = graph.get_state(config("below"), subgraphs=True).tasks[0].state
    with pytest.warns(DroppedQuestions):
        graph.update_state(below.config, {"kind": "edited"})
    with pytest.raises(NothingToResumeError):
        graph.invoke(Command(resume="yes"), config("below"))
    assert [i.value for i in graph.invoke(None, config("below"))["__interrupt__"]] == ["sure?"]
    assert graph.invoke(Command(resume="yes"), config("below"))["log"] == ["yes"]
