"""ValidationNode checks the arguments of tool calls as that of LangGraph does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

from graphd.dev import DevServer
from graphd.errors import MissingPackageError
from graphd.graph import END, START, MessagesState, StateGraph, add_messages
from graphd.messages import from_dict
from graphd.prebuilt import Tool, ValidationNode
from graphd.warnings import LangGraphDeprecatedSinceV10

pytestmark = pytest.mark.filterwarnings("ignore:ValidationNode is deprecated")


class Guess(BaseModel):
    """A number that must be 37."""

    number: int

    @field_validator("number")
    @classmethod
    def check_number(cls, number: int) -> int:
        if number != 37:
            raise ValueError("it is another one")
        return number


class Range(BaseModel):
    low: int
    high: int


def search(text: str, most: Annotated[int, Field(gt=3)] = 5, *, within: Range | None = None) -> str:
    """Searches."""
    return text


def spread(first, *rest, **named):  # type: ignore[no-untyped-def]
    """Has no types."""


def filled(text: str, callbacks: Any, run_manager: Any) -> None:
    """LangChain fills two arguments in."""


class Shop:
    def buy(self, item: str, tags: list[str] = []) -> None:  # noqa: B006
        """Buys."""

    def sell(self, item: str) -> None:
        """Sells."""


SCHEMAS = [Guess, search, spread, filled, Shop.buy, Shop().sell]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Guess", {"number": "37"}),
    ("Guess", {"number": 36}),
    ("Guess", {}),
    ("search", {"text": "a", "unknown": 1}),
    ("search", {"text": 7, "most": 2}),
    ("search", {"text": "a", "within": {"low": "1", "high": 2}}),
    ("search", {"text": "a", "within": {"low": 1}}),
    ("spread", {"first": [1], "rest": [1, 2], "named": {"a": 1}}),
    ("spread", {"first": 1, "other": 2}),
    ("spread", {}),
    ("filled", {"text": "a"}),
    ("filled", {}),
    ("buy", {"item": "lamp"}),
    ("buy", {"self": 1}),
    ("sell", {"item": "lamp"}),
]


def ai_message(*calls: tuple[str, dict[str, Any]]) -> Any:
    listed = [{"name": name, "args": args, "id": f"c{i}", "type": "tool_call"} for i, (name, args) in enumerate(calls)]
    return from_dict({"type": "ai", "content": "", "tool_calls": listed})


def read_answers(answers: list[Any]) -> list[dict[str, Any]]:
    """What is in answers; of the text for the model only what is wrong, which pydantic says."""
    found = []
    for one in answers:
        fields = {
            key: getattr(one, key, None) for key in ("type", "name", "tool_call_id", "additional_kwargs", "status")
        }
        found.append({**fields, "content": one.content.partition("\n\n")[0]})
    return found


def their_node() -> Any:
    """The class of LangGraph."""
    pytest.importorskip("langchain_core")
    return pytest.importorskip("langgraph.prebuilt").ValidationNode


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_calls_get_the_answers_that_they_get_on_langgraph() -> None:
    theirs = their_node()(SCHEMAS)
    ours = ValidationNode(SCHEMAS)
    assert list(ours.schemas_by_name) == list(theirs.schemas_by_name)
    assert (ours.name, ours.tags) == (theirs.name, theirs.tags)
    message = ai_message(*CALLS)
    told = ours.invoke([message])
    assert read_answers(told) == read_answers(theirs.invoke([message]))
    assert [one.additional_kwargs for one in told].count({"is_error": True}) == 7
    assert read_answers(ours.invoke({"messages": [message]})["messages"]) == read_answers(told)
    assert ours.invoke({"messages": [ai_message()]}) == theirs.invoke({"messages": [ai_message()]}) == {"messages": []}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tools_of_langchain_have_schemas() -> None:
    tools = pytest.importorskip("langchain_core.tools")
    given = [tools.StructuredTool.from_function(name="guess", description="-", func=print, args_schema=Guess)]
    told = [
        node(given).invoke([ai_message(("guess", {"number": 37}), ("guess", {}))])
        for node in (ValidationNode, their_node())
    ]
    assert read_answers(told[0]) == read_answers(told[1])
    without = tools.StructuredTool(name="free", description="-", func=print, args_schema={"type": "object"})
    for node in (ValidationNode, their_node()):
        with pytest.raises(ValueError, match="args_schema"):
            node([without])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_models_of_pydantic_1() -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("pydantic 1 has no models there")
    older = pytest.importorskip("pydantic.v1").create_model("Older", number=(int, ...))
    message = ai_message(("Older", {"number": "1"}), ("Older", {"number": "one"}))
    told = ValidationNode([older]).invoke([message])
    assert read_answers(told) == read_answers(their_node()([older]).invoke([message]))
    assert [one.additional_kwargs for one in told] == [{}, {"is_error": True}]


def test_a_program_words_its_errors() -> None:
    def explain(error: BaseException, call: Any, schema: Any) -> str:
        return f"{type(error).__name__} in {call['args']} of {schema.__name__}"

    node = ValidationNode([Guess], format_error=explain, name="check", tags=["strict"])
    (told,) = node.invoke([ai_message(("Guess", {"number": 1}))])
    assert (told.content, node.name, node.tags) == ("ValidationError in {'number': 1} of Guess", "check", ["strict"])


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no schema": (lambda: ValidationNode([7]), ValueError, "schemas: 7 is none; want a model of pydantic, a tool or"),
    "no message": (lambda: ValidationNode([]).invoke([]), ValueError, "there is no message"),
    "no messages": (lambda: ValidationNode([]).invoke({"messages": []}), ValueError, "there is no message"),
    "no key": (lambda: ValidationNode([]).invoke({}), ValueError, "there is no message"),
    "a person": (
        lambda: ValidationNode([]).invoke([from_dict({"type": "human", "content": "a"})]),
        ValueError,
        "its type is 'human'",
    ),
    "no such tool": (
        lambda: ValidationNode([Guess, search]).invoke([ai_message(("find", {}))]),
        KeyError,
        "find: no schema is for calls of it; there are Guess, search",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    make, kind, said = MISTAKES[name]
    with pytest.raises(kind, match=said):
        make()


def test_langgraph_has_deprecated_it() -> None:
    for node, category in ((ValidationNode, LangGraphDeprecatedSinceV10), (their_node(), None)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            node([Guess])
        (warning,) = caught
        assert warning.category.__name__ == "LangGraphDeprecatedSinceV10"
        assert issubclass(warning.category, category or DeprecationWarning)
        assert warning.filename == __file__


def test_tools_of_graphd_are_checked_as_their_functions() -> None:
    node = ValidationNode([Tool("find", search, False, search)])
    assert [one.content for one in node.invoke([ai_message(("find", {"text": "a"}))])] == [
        '{"text":"a","most":5,"within":null}'
    ]


def test_calls_are_checked_side_by_side() -> None:
    both = threading.Barrier(2, timeout=60)

    class Slow(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def wait(cls, number: int) -> int:
            both.wait()
            return number

    told = asyncio.run(ValidationNode([Slow]).ainvoke([ai_message(("Slow", {"number": 1}), ("Slow", {"number": 2}))]))
    assert [one.content for one in told] == ['{"number":1}', '{"number":2}']


def test_a_model_is_asked_until_its_call_is_right(server: DevServer) -> None:
    guesses = iter([35, 36, 37])

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [ai_message(("Guess", {"number": next(guesses)}))]}

    def is_wrong(state: MessagesState) -> str:
        return "ask" if state["messages"][-1].additional_kwargs.get("is_error") else END

    builder = StateGraph(MessagesState).add_node(ask).add_node(ValidationNode([Guess]))
    builder.add_edge(START, "ask").add_edge("ask", "validation").add_conditional_edges("validation", is_wrong)
    ended = builder.compile(server=server.address, name="guesses").invoke({"messages": ["go"]})
    assert [m.type for m in ended["messages"]] == ["human", *["ai", "tool"] * 3]
    assert ended["messages"][-1].content == '{"number":37}'


def test_a_state_that_is_a_list(server: DevServer) -> None:
    builder = StateGraph(Annotated[list[Any], add_messages])
    builder.add_node("ask", lambda state: [ai_message(("Guess", {"number": 37}))]).add_node(ValidationNode([Guess]))
    builder.add_edge(START, "ask").add_edge("ask", "validation")
    ended = builder.compile(server=server.address, name="list-of-guesses").invoke(["go"])
    assert ended[-1].content == '{"number":37}'


def test_it_needs_pydantic_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
import sys
for name in ("langchain_core", "langchain", "langgraph"):
    sys.modules[name] = None
from graphd.messages import AIMessage
from graphd.prebuilt import ValidationNode

def add(a: int, b: int) -> int:
    return a + b

calls = [{"name": "add", "args": args, "id": "c", "type": "tool_call"} for args in ({"a": 1, "b": "2"}, {})]
for answer in ValidationNode([add]).invoke([AIMessage("", tool_calls=calls)]):
    print(answer.content.splitlines()[0], answer.additional_kwargs)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == '{"a":1,"b":2} {}\n2 validation errors for Validation {\'is_error\': True}\n', done.stderr
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(MissingPackageError, match="ValidationNode needs pydantic: pip install pydantic"):
        ValidationNode([])
