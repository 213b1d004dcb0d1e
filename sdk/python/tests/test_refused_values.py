"""Values that can't be stored, or combined with the state: what is raised names them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, Command, InMemorySaver, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.errors import InvalidUpdateError, LimitExceededError


class State(TypedDict, total=False):
    number: int


def build(node: Any = lambda state: {"number": 1}) -> StateGraph:
    return StateGraph(State).add_node("node", node).add_edge(START, "node")


def test_an_input_without_a_json_form_names_its_key(server: DevServer) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="no-json-input")
    config = {"configurable": {"thread_id": "no-json-input"}}
    for given in ({"number": object()}, Command(update={"number": object()})):
        with pytest.raises(TypeError, match=r"^the value of 'number' can't be stored: object has no JSON form"):
            graph.invoke(given, config)
    graph.invoke({}, config)
    with pytest.raises(TypeError, match=r"^the value of 'number' can't be stored: object has no JSON form"):
        graph.update_state(config, {"number": object()})


def test_an_answer_without_a_json_form_is_named(server: DevServer) -> None:
    graph = build(lambda state: {"number": interrupt("how many?")}).compile(
        InMemorySaver(server=server.address), name="no-json-answer"
    )
    config = {"configurable": {"thread_id": "no-json-answer"}}
    graph.invoke({}, config)
    with pytest.raises(TypeError, match=r"^the answer can't be stored: object has no JSON form"):
        graph.invoke(Command(resume=object()), config)


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    last: int


def test_a_refused_value_names_who_wrote_it(server: DevServer) -> None:
    def run(name: str, given: Any, *nodes: Any) -> None:
        builder = StateGraph(Log)
        for number, node in enumerate(nodes):
            builder.add_node(f"n{number}", node).add_edge(START, f"n{number}")
        builder.compile(InMemorySaver(server=server.address), name=name).invoke(
            given, {"configurable": {"thread_id": name}}
        )

    cases: list[tuple[str, Any, list[Any], str]] = [
        ("one", {}, [lambda state: {"log": "text"}], r"^node 'n0': channel log: combines arrays, .* one element$"),
        ("input", {"log": "text"}, [lambda state: {}], r"^the input: channel log: combines arrays, .* one element$"),
        ("large", {}, [lambda state: {"log": ["x" * 5_000_000]}], r"^node 'n0': the result has 50000\d\d bytes; "),
        (
            "two",
            {},
            [lambda state: {"last": 1}, lambda state: {"last": 2}],
            r"(?s)^nodes 'n0', 'n1': channel last: got 2 values .* code: INVALID_CONCURRENT_GRAPH_UPDATE$",
        ),
    ]
    for name, given, nodes, told in cases:
        with pytest.raises((InvalidUpdateError, LimitExceededError), match=told):
            run(f"refused-{name}", given, *nodes)
