"""Calls with durability="exit" show as one checkpoint each."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import START, StateGraph
from graphd.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture
def graph(server: DevServer) -> Any:
    builder = StateGraph(State).add_edge(START, "a").add_edge("a", "b").add_edge("b", "ask").add_edge("ask", "c")
    for name in "abc":
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    builder.add_node("ask", lambda state: {"log": [interrupt("?")]})
    return builder.compile(InMemorySaver(server=server.address))


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": f"durability-{thread}"}}


def history(graph: Any, thread: str) -> list[Any]:
    """The state and step of each checkpoint, and the step of its parent."""
    listed = list(graph.get_state_history(config(thread)))
    steps = {s.config["configurable"]["checkpoint_id"]: s.metadata["step"] for s in listed}
    return [
        (
            s.values["log"],
            s.metadata["step"],
            s.parent_config and steps[s.parent_config["configurable"]["checkpoint_id"]],
        )
        for s in listed
    ]


def test_every_call_is_one(graph: Any) -> None:
    graph.invoke({"log": ["in"]}, config("1"), durability="exit")
    graph.invoke(Command(resume="x"), config("1"), durability="exit")
    assert history(graph, "1") == [(["in", "a", "b", "x", "c"], 4, 2), (["in", "a", "b"], 2, None)]
    newest = graph.get_state(config("1"))
    assert newest.parent_config is not None
    assert graph.get_state(newest.parent_config).values["log"] == ["in", "a", "b"]


def test_updates_and_other_calls_stay_what_they_are(graph: Any) -> None:
    graph.invoke({"log": ["in"]}, config("2"), durability="exit")
    with pytest.warns(UserWarning):
        graph.update_state(config("2"), {"log": ["by hand"]}, as_node="ask")
    graph.invoke(None, config("2"), durability="exit")
    assert history(graph, "2") == [
        (["in", "a", "b", "by hand", "c"], 4, 3),
        (["in", "a", "b", "by hand"], 3, 2),
        (["in", "a", "b"], 2, None),
    ]


def test_calls_before_it_keep_their_checkpoints(graph: Any) -> None:
    graph.invoke({"log": ["in"]}, config("3"))
    graph.invoke(Command(resume="x"), config("3"), durability="exit")
    assert [step for _, step, _ in history(graph, "3")] == [4, 2, 1, 0, -1]


def test_unknown_words_are_refused(graph: Any) -> None:
    with pytest.raises(ValueError, match="durability"):
        graph.invoke({"log": []}, config("4"), durability="never")
