"""What an answer must be: a JSON Schema, or a class whose object the node gets."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
import uuid
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from typing_extensions import TypedDict

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.errors import GraphdError, GraphInterrupt, InvalidResumeError, is_invalid_resume
from graphd.graph import START, StateGraph
from graphd.runtime import scope
from graphd.types import Command, Interrupt, interrupt


class State(TypedDict):
    answer: Any


class Decision(pydantic.BaseModel):
    approve: bool
    amount: int = 0

    @pydantic.field_validator("amount")
    @classmethod
    def small(cls, amount: int) -> int:
        if amount > 100:
            raise ValueError("at most 100")
        return amount


@dataclasses.dataclass
class Refund:
    amount: int


class Note(TypedDict):
    text: str


class Kind(enum.Enum):
    FULL = "full"
    PART = "part"


class Order(pydantic.BaseModel):
    """A model of models, as JSON Schema has them behind references."""

    decision: Decision
    kinds: set[Kind]
    due: datetime.datetime
    notes: dict[str, Note] | None = None


Compile = Callable[..., Any]


@pytest.fixture
def compile_asking(server: DevServer) -> Compile:
    """A graph with one node, which returns what it makes of its answer."""

    def compile_graph(ask: Callable[[], Any]) -> Any:
        builder = StateGraph(State).add_node("ask", lambda state: {"answer": ask()}).add_edge(START, "ask")
        return builder.compile(InMemorySaver(server=server.address))

    return compile_graph


@pytest.fixture
def config() -> Any:
    """A thread of its own for each test."""
    return {"configurable": {"thread_id": uuid.uuid4().hex}}


WRONG = {"approve": True, "amount": "many"}


def waiting(graph: Any, config: Any) -> Interrupt:
    (question,) = graph.get_state(config).interrupts
    return question  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("schema", "answer", "read"),
    [
        (Decision, {"approve": True}, "Decision(approve=True, amount=0)"),
        (Refund, {"amount": 3}, "Refund(amount=3)"),
        (Note, {"text": "fine"}, "{'text': 'fine'}"),
        ({"type": "integer"}, 3, "3"),
        (None, {"any": 1}, "{'any': 1}"),
    ],
)
def test_the_node_gets_the_object_of_an_answer(
    compile_asking: Compile, config: Any, schema: Any, answer: Any, read: str
) -> None:
    graph = compile_asking(lambda: repr(interrupt("?", response_schema=schema)))
    graph.invoke({}, config)
    shown = waiting(graph, config).response_schema
    wanted = pydantic.TypeAdapter(schema).json_schema() if isinstance(schema, type) else schema
    assert shown == wanted
    assert graph.invoke(Command(resume=answer), config) == {"answer": read}


def test_an_object_of_the_class_is_an_answer(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: repr(interrupt("?", response_schema=Decision)))
    graph.invoke({}, config)
    assert graph.invoke(Command(resume=Decision(approve=False, amount=7)), config) == {
        "answer": "Decision(approve=False, amount=7)"
    }


@pytest.mark.parametrize("schema", [Decision, Decision.model_json_schema()])
def test_an_answer_that_the_schema_refuses_is_not_stored(compile_asking: Compile, config: Any, schema: Any) -> None:
    graph = compile_asking(lambda: bool(interrupt("?", response_schema=schema)))
    (question,) = graph.invoke({}, config)["__interrupt__"]
    for wrong in (WRONG, {question.id: WRONG}):
        with pytest.raises(InvalidResumeError, match="amount") as refused:
            graph.invoke(Command(resume=wrong), config)
        assert is_invalid_resume(refused.value) and isinstance(refused.value, ValueError)
    assert waiting(graph, config) == question
    assert graph.invoke(Command(resume={"approve": True}), config) == {"answer": True}


def test_an_answer_that_only_the_class_refuses_is_asked_anew(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: (interrupt("?", response_schema=Decision).amount, interrupt("more?")))
    (question,) = graph.invoke({}, config)["__interrupt__"]
    asked = {question.id}
    for amount in (101, 102):
        with pytest.raises(pydantic.ValidationError, match=f"at most 100.*{amount}") as refused:
            graph.invoke(Command(resume={"approve": True, "amount": amount}), config)
        assert is_invalid_resume(refused.value)
        again = waiting(graph, config)
        assert (again.value, again.response_schema) == (question.value, question.response_schema)
        assert again.id not in asked
        asked.add(again.id)
    (more,) = graph.invoke(Command(resume={"approve": True, "amount": 100}), config)["__interrupt__"]
    assert more.value == "more?"
    assert graph.invoke(Command(resume="no"), config) == {"answer": [100, "no"]}


async def test_an_async_caller_learns_it_too(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: interrupt("?", response_schema=Decision).amount)
    await graph.ainvoke({}, config)
    with pytest.raises(pydantic.ValidationError):
        await graph.ainvoke(Command(resume={"approve": True, "amount": 101}), config)
    assert await graph.ainvoke(Command(resume={"approve": True, "amount": 1}), config) == {"answer": 1}


@pytest.mark.parametrize("schema", ["Decision", 5, InMemorySaver])
def test_what_has_no_json_schema_is_refused(compile_asking: Compile, config: Any, schema: Any) -> None:
    graph = compile_asking(lambda: interrupt("?", response_schema=schema))
    with pytest.raises(TypeError, match=r"response_schema: .* has no JSON Schema"):
        graph.invoke({}, config)


def test_the_older_name_is_not_given_beside_the_newer(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: interrupt("?", response_schema={}, schema={}))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="not both"):
        graph.invoke({}, config)


def test_streams_show_the_schema(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: interrupt("?", response_schema={"type": "string"}))
    (result,) = [e for e in graph.stream({}, config, stream_mode="tasks") if "result" in e]
    (shown,) = result["interrupts"]
    assert shown == {"value": "?", "id": shown["id"], "response_schema": {"type": "string"}}
    assert (
        repr(waiting(graph, config))
        == f"Interrupt(value='?', id='{shown['id']}', response_schema={{'type': 'string'}})"
    )


def test_other_errors_are_no_invalid_answers() -> None:
    assert not any(map(is_invalid_resume, (ValueError(), GraphdError("x"))))


def test_a_model_of_models_is_read(compile_asking: Compile, config: Any) -> None:
    graph = compile_asking(lambda: repr(interrupt("?", response_schema=Order)))
    graph.invoke({}, config)
    given = {
        "decision": {"approve": True},
        "kinds": ["part"],
        "due": "2024-05-01T10:00:00Z",
        "notes": {"a": {"text": "b"}},
    }
    with pytest.raises(InvalidResumeError, match="kinds"):
        graph.invoke(Command(resume=given | {"kinds": ["all"]}), config)
    assert graph.invoke(Command(resume=given), config) == {"answer": repr(Order.model_validate(given))}


def test_an_answer_to_another_class_is_not_used(compile_asking: Compile, config: Any) -> None:
    wanted: list[Any] = [Decision]
    graph = compile_asking(lambda: (interrupt("?", response_schema=wanted[0]), interrupt("more?"))[1])
    graph.invoke({}, config)
    graph.invoke(Command(resume={"approve": True}), config)
    wanted[0] = Refund  # new code
    (again,) = graph.invoke(Command(resume="yes"), config)["__interrupt__"]
    assert again.differs == ("schema",)


def test_the_questions_behind_a_refused_answer_keep_theirs(compile_asking: Compile, config: Any) -> None:
    def ask() -> list[Any]:
        first = interrupt("first", key="first", response_schema=Decision)
        return [first.amount, interrupt("second", response_schema=Decision).amount, interrupt("third")]

    graph = compile_asking(ask)
    graph.invoke({}, config)
    for amounts in ((101, 1), (102, 2)):
        with pytest.raises(pydantic.ValidationError):
            graph.invoke(Command(resume={"approve": True, "amount": amounts[0]}), config)
        graph.invoke(Command(resume={"approve": True, "amount": amounts[1]}), config)
    assert waiting(graph, config).value == "third"
    assert graph.invoke(Command(resume=3), config) == {"answer": [1, 2, 3]}


def test_every_part_of_a_node_asks_its_own_anew(compile_asking: Compile, config: Any) -> None:
    def ask() -> list[Any]:
        amounts: list[Any] = []
        asked: list[GraphInterrupt] = []
        for name in ("a", "b"):
            with scope(name):
                try:
                    amounts.append(interrupt(name, response_schema=Decision).amount)
                except GraphInterrupt as question:
                    asked.append(question)
        if asked:
            raise asked[0]
        return amounts

    graph = compile_asking(ask)
    first, second = graph.invoke({}, config)["__interrupt__"]
    right, wrong = {"approve": True, "amount": 1}, {"approve": True, "amount": 101}
    with pytest.raises(pydantic.ValidationError):
        graph.invoke(Command(resume={first.id: wrong, second.id: right}), config)
    assert waiting(graph, config).value == "a"
    assert graph.invoke(Command(resume=right), config) == {"answer": [1, 1]}


def test_a_class_needs_pydantic(compile_asking: Compile, config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class Unseen:
        amount: int

    monkeypatch.setitem(sys.modules, "pydantic", None)
    graph = compile_asking(lambda: interrupt("?", response_schema=Unseen))
    with pytest.raises(TypeError, match="response_schema: a class needs pydantic"):
        graph.invoke({}, config)
    graph = compile_asking(lambda: interrupt("?", response_schema={"type": "integer"}))
    config["configurable"]["thread_id"] += "-dict"
    graph.invoke({}, config)
    assert graph.invoke(Command(resume=3), config) == {"answer": 3}


def test_a_default_that_the_class_refuses_is_refused_when_it_is_asked(compile_asking: Compile, config: Any) -> None:
    def ask(default: Any) -> Any:
        return interrupt("?", response_schema=Decision, ttl=3600, on_expiry="resume_default", default=default)

    graph = compile_asking(lambda: ask({"approve": True, "amount": 101}))
    with pytest.raises(ValueError, match=r"default is no answer.*amount: .*at most 100"):
        graph.invoke({}, config)
    graph = compile_asking(lambda: ask(Decision(approve=True, amount=100)).amount)
    config["configurable"]["thread_id"] += "-right"
    graph.invoke({}, config)
    assert graph.invoke(Command(resume={"approve": False}), config) == {"answer": 0}
