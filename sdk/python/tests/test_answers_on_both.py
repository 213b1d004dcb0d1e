"""The same code asks, answers and catches refusals on LangGraph and on graphd."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from typing_extensions import TypedDict

from graphd.dev import DevServer

ROOTS = ("langgraph", "graphd")
UNKNOWN = "0" * 32


class State(TypedDict):
    a: str
    b: str


def refusals(root: str, saver: Any) -> list[tuple[str, list[str], list[str]]]:
    """How a library refuses answers: the reason, and the questions that its ids stand for."""
    graph, types, errors = (importlib.import_module(f"{root}.{name}") for name in ("graph", "types", "errors"))
    builder = graph.StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, lambda state, name=name: {name: types.interrupt(f"{name}?")})
        builder.add_edge(graph.START, name)
    both = builder.compile(saver)
    config = {"configurable": {"thread_id": "strict", "__pregel_strict_resume": True}}
    names = {i.id: i.value for i in both.invoke({"a": "", "b": ""}, config)["__interrupt__"]} | {UNKNOWN: "unknown"}
    ids = {value: id for id, value in names.items()}
    seen = []

    def answer(value: Any) -> None:
        try:
            both.invoke(types.Command(resume=value), config)
        except errors.UnknownInterruptError as error:
            shown = [sorted(names[i] for i in found) for found in (error.interrupt_ids, error.pending_ids)]
            seen.append((error.reason, *shown))

    answer("for whom?")
    answer({UNKNOWN: "x"})
    answer({UNKNOWN: "x", ids["a?"]: "x"})
    answer({ids["a?"]: "first"})
    answer({ids["a?"]: "second"})
    answer({ids["a?"]: "second", ids["b?"]: "x"})
    answer("last")
    assert both.get_state(config).values == {"a": "first", "b": "last"}
    answer({ids["b?"]: "late"})
    return seen


class Decision(pydantic.BaseModel):
    approve: bool
    note: str | None = None


@dataclasses.dataclass
class Refund:
    amount: int
    decision: Decision


class Note(TypedDict):
    texts: list[str]


ANSWERS: list[tuple[Any, list[Any]]] = [
    (Decision, [{"approve": "maybe"}, {"approve": True, "note": "ok"}]),
    (Refund, [{"amount": 1}, {"amount": 3, "decision": {"approve": False}}]),
    (Note, [{"texts": [1]}, "text", {"texts": ["a", "b"]}]),
    ({"type": "integer"}, [3]),
]


def answers(root: str, saver: Any) -> list[Any]:
    """What a library shows of questions with a schema, and makes of their answers."""
    graph, types, errors = (importlib.import_module(f"{root}.{name}") for name in ("graph", "types", "errors"))
    seen: list[Any] = []
    for number, (schema, given) in enumerate(ANSWERS):
        builder = graph.StateGraph(State)
        builder.add_node("a", lambda state, schema=schema: {"a": repr(types.interrupt("?", response_schema=schema))})
        asking = builder.add_edge(graph.START, "a").compile(saver)
        config = {"configurable": {"thread_id": f"answers-{number}"}}
        (question,) = asking.invoke({"a": "", "b": ""}, config)["__interrupt__"]
        seen.append((question.value, question.response_schema))
        for answer in given:
            try:
                seen.append(asking.invoke(types.Command(resume=answer), config))
            except ValueError as error:
                seen.append(("refused", errors.is_invalid_resume(error), asking.get_state(config).next))
    return seen


Program = Callable[[str, Any], list[Any]]


@pytest.mark.parametrize(("program", "length"), [(refusals, 6), (answers, 12)])
def test_the_same_is_seen_on_both(
    program: Program, length: int, server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphd.server_choice.shared_dev_server", lambda: server)
    seen = {root: program(root, importlib.import_module(f"{root}.checkpoint.memory").InMemorySaver()) for root in ROOTS}
    assert len(seen["langgraph"]) == length
    assert seen["graphd"] == seen["langgraph"]
