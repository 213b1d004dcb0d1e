"""What a node returns and graphd can't store."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from graphd import START, InMemorySaver, Overwrite, Send, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.errors import LimitExceededError


class State(TypedDict, total=False):
    good: int
    bad: Any


def run(server: DevServer, name: str, value: Any) -> Any:
    builder = StateGraph(State).add_node("makes", lambda state: {"good": 1, "bad": value}).add_edge(START, "makes")
    compiled = builder.compile(InMemorySaver(server=server.address), name=name)
    return compiled.invoke({"good": 0}, {"configurable": {"thread_id": name}})


@pytest.mark.parametrize(
    ("value", "error"),
    [(float("nan"), ValueError), ({"in": [object()]}, TypeError), (Overwrite(object()), TypeError)],
)
def test_a_value_without_a_json_form_is_named(server: DevServer, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^node 'makes': the value of 'bad' can't be stored: ") as raised:
        run(server, f"no-json-form-{type(value).__name__}", value)
    assert type(raised.value) is error


def test_a_question_without_a_json_form_names_its_node(server: DevServer) -> None:
    def asks(state: State) -> State:
        return {"bad": interrupt(float("nan"))}

    builder = StateGraph(State).add_node("asks", asks).add_edge(START, "asks")
    compiled = builder.compile(InMemorySaver(server=server.address), name="asks-no-json")
    with pytest.raises(ValueError, match=r"^node 'asks': the value of the question can't be stored: "):
        compiled.invoke({"good": 0}, {"configurable": {"thread_id": "asks-no-json"}})


def test_a_send_without_a_json_form_names_its_target(server: DevServer) -> None:
    builder = StateGraph(State).add_node("to", lambda state: {})
    builder.add_conditional_edges(START, lambda state: [Send("to", {"x": object()})], ["to"])
    compiled = builder.compile(InMemorySaver(server=server.address), name="send-no-json")
    with pytest.raises(TypeError, match=r"^the input for 'to' can't be stored: "):
        compiled.invoke({"good": 0}, {"configurable": {"thread_id": "send-no-json"}})


def test_what_is_nested_too_deep_is_beyond_a_limit(server: DevServer) -> None:
    deep: Any = None
    for _ in range(200):
        deep = [deep]
    with pytest.raises(LimitExceededError, match="128 levels") as raised:
        run(server, "too-deep", deep)
    assert (raised.value.reason, raised.value.limit, raised.value.most) == ("LIMIT_EXCEEDED", "max-depth", 128)
    assert "Error code" not in str(raised.value)


def test_what_is_nested_beyond_the_stack_names_its_key(server: DevServer) -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match=r"^node 'makes': the value of 'bad' can't be stored: it is nested too deep"):
        run(server, "beyond-the-stack", deep)


@pytest.mark.parametrize(
    "marked",
    [{"__graphd__": "send"}, {"__graphd__": "command", "more": 1}, {"__graphd__": "message", "type": "tool"}],
    ids=lambda marked: str(marked["__graphd__"]),
)
def test_what_only_looks_like_an_object_of_the_sdk_stays_readable(server: DevServer, marked: Any) -> None:
    builder = StateGraph(State).add_node("sees", lambda state: {"good": len(state["bad"])}).add_edge(START, "sees")
    name = f"looks-like-{marked['__graphd__']}"
    compiled = builder.compile(InMemorySaver(server=server.address), name=name)
    config: Any = {"configurable": {"thread_id": name}}
    assert compiled.invoke({"bad": marked}, config) == {"good": len(marked), "bad": marked}
    assert compiled.get_state(config).values["bad"] == marked
