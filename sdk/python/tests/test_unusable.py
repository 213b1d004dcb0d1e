"""What a node returns and graphd can't store."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from graphd import START, InMemorySaver, Overwrite, StateGraph
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


def test_what_is_nested_too_deep_is_beyond_a_limit(server: DevServer) -> None:
    deep: Any = None
    for _ in range(200):
        deep = [deep]
    with pytest.raises(LimitExceededError, match="128 levels") as raised:
        run(server, "too-deep", deep)
    assert (raised.value.reason, raised.value.limit, raised.value.most) == ("LIMIT_EXCEEDED", "max-depth", 128)
    assert "Error code" not in str(raised.value)
