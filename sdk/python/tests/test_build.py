"""Mistakes in a graph are told when it is built."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

from graphd.channels import EphemeralValue, Topic
from graphd.checkpoint.memory import InMemorySaver
from graphd.declare.options import CompileOptions
from graphd.declare.program import Program
from graphd.declare.spec import build_spec
from graphd.dev import DevServer
from graphd.errors import GraphdError, InvalidGraphError
from graphd.graph import END, START, MessagesState, StateGraph
from graphd.managed import RemainingSteps
from graphd.types import Command, RetryPolicy


class State(TypedDict):
    a: Annotated[list[str], operator.add]


def node(state: State) -> dict[str, Any]:
    return {}


def graph(*edges: tuple[Any, Any]) -> StateGraph:
    builder = StateGraph(State).add_node("n", node)
    for source, target in edges:
        builder.add_edge(source, target)
    return builder


MISTAKES: dict[str, Callable[[], Any]] = {
    "no entry": lambda: graph().compile(),
    "edge to an unknown node": lambda: graph((START, "n"), ("n", "m")).compile(),
    "edge from an unknown node": lambda: graph((START, "n"), ("x", "n")).compile(),
    "node twice": lambda: graph().add_node("n", node),
    "reserved node": lambda: graph().add_node(START, node),
    "bar in a name": lambda: graph().add_node("a|b", node),
    "colon in a name": lambda: graph().add_node("a:b", node),
    "stop at an unknown node": lambda: graph((START, "n")).compile(interrupt_before=["zz"]),
    "edge from END": lambda: graph((END, "n")),
    "edge to START": lambda: graph(("n", START)),
    "path to an unknown node": lambda: (
        graph((START, "n")).add_conditional_edges("n", lambda s: "zz", {"zz": "zz"}).compile()
    ),
    "two branches of one name": lambda: graph().add_conditional_edges("n", node).add_conditional_edges("n", node),
    "join with an unknown node": lambda: graph((["n", "m"], END)),
    "reducer of one argument": lambda: StateGraph(TypedDict("S", {"a": Annotated[list, lambda x: x]})),
    "timeout of a plain function": lambda: graph().add_node("slow", node, timeout=1.0),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_value_error(name: str) -> None:
    with pytest.raises(ValueError) as raised:
        MISTAKES[name]()
    assert not isinstance(raised.value, GraphdError) or raised.value.reason == "INVALID_GRAPH"


def test_a_node_without_an_edge_to_it_is_accepted(server: DevServer) -> None:
    compiled = graph((START, "n")).add_node("alone", node).compile(InMemorySaver(server=server.address))
    assert compiled.invoke({"a": ["x"]}, {"configurable": {"thread_id": "build-1"}}) == {"a": ["x"]}


def test_a_root_graph_needs_a_saver_of_its_own() -> None:
    with pytest.raises(RuntimeError):
        graph((START, "n")).compile(checkpointer=True).invoke({"a": []})


def test_a_saver_needs_a_thread(server: DevServer) -> None:
    with pytest.raises(ValueError, match="thread_id"):
        graph((START, "n")).compile(InMemorySaver(server=server.address)).invoke({"a": []})


def test_what_the_server_refuses_is_told(server: DevServer) -> None:
    builder = StateGraph(State).add_node("__x", node).add_edge(START, "__x")
    with pytest.raises(InvalidGraphError) as raised:
        builder.compile(server=server.address, name="refused")
    assert raised.value.violations


def route(state: State) -> Literal["n", "__end__"]:
    return END


def test_the_description_says_what_the_builder_was_told() -> None:
    class Full(TypedDict):
        log: Annotated[list[str], operator.add]
        count: Annotated[int, operator.add]
        text: Annotated[str, operator.add]
        best: Annotated[int, max]
        seen: Annotated[dict, operator.or_]
        custom: Annotated[list, lambda a, b: b + a]
        once: Annotated[str, EphemeralValue]
        topic: Annotated[list, Topic(str)]
        steps: RemainingSteps
        plain: str

    builder = StateGraph(Full)
    builder.add_node("n", node, retry_policy=RetryPolicy(max_attempts=5, jitter=False), defer=True)
    builder.add_edge(START, "n").add_conditional_edges("n", route)
    spec = build_spec(_program(builder))
    reducers = {c.name: c.reducer for c in spec.channels}
    assert reducers == {
        "log": "append",
        "count": "add",
        "text": "add",
        "best": "max",
        "seen": "merge",
        "custom": "remote",
        "once": "ephemeral",
        "topic": "topic_once",
        "plain": "last",
        "a": "append",
    }
    (one,) = spec.nodes
    assert one.deferred
    assert one.policy.retry[0].max_attempts == 5
    assert one.policy.retry[0].no_jitter
    assert list(spec.branches[0].targets) == ["n", END]


def test_messages_are_kept_by_the_reducer_of_the_server() -> None:
    spec = build_spec(_program(StateGraph(MessagesState).add_node("n", node).add_edge(START, "n")))
    assert {c.name: c.reducer for c in spec.channels}["messages"] == "messages"


def _program(builder: StateGraph) -> Program:
    return Program(builder, CompileOptions(name="g"))


def test_drawing() -> None:
    child = graph((START, "n")).compile(name="child")

    def decide(state: State) -> Command[Literal["n"]]:
        return Command(goto="n")

    builder = graph((START, "decide")).add_node(decide).add_node("child", child).add_edge("n", "child")
    text = builder.compile().get_graph().draw_mermaid()
    assert "decide -.-> n;" in text
    assert "child --> __end__;" in text
    opened = builder.compile().get_graph(xray=True).draw_mermaid()
    assert "child\\3an" in opened


def test_what_is_compiled_of_one_builder_is_one_graph(server: DevServer) -> None:
    builder, saver = graph((START, "n")).add_node("m", node).add_edge("n", "m"), InMemorySaver(server=server.address)
    config: Any = {"configurable": {"thread_id": "build-2"}}
    stopping, going = builder.compile(saver, interrupt_before=["m"]), builder.compile(saver)
    stopping.invoke({"a": ["x"]}, config)
    assert stopping.get_state(config).next == ("m",)
    assert going.invoke(None, config) == {"a": ["x"]}
    assert going.get_state(config).next == ()
