"""Graphs tell what they take and return as LangGraph's do."""

from __future__ import annotations

import importlib
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from graphd.errors import MissingPackageError
from graphd.graph import START, StateGraph

pydantic = pytest.importorskip("pydantic")
typing_extensions = pytest.importorskip("typing_extensions")


class Keys(typing_extensions.TypedDict):  # type: ignore[misc, name-defined]
    """What is known."""

    name: str
    log: Annotated[list[str], operator.add]
    model_name: typing_extensions.NotRequired[int | None]


class Narrow(typing_extensions.TypedDict, total=False):  # type: ignore[misc, name-defined]
    name: str
    copy: int


@dataclass
class Fields:
    name: str
    size: int = 3
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    maybe: str | None = None


class Model(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    name: str
    size: int = 3


@dataclass
class Context:
    user: str
    limit: int = 1


CASES: dict[str, dict[str, Any]] = {
    "keys": {"state_schema": Keys, "context_schema": Context},
    "narrow": {"state_schema": Keys, "input_schema": Narrow, "output_schema": Narrow, "context_schema": Narrow},
    "fields": {"state_schema": Fields, "context_schema": Model},
    "model": {"state_schema": Model, "input_schema": Fields},
    "one value": {"state_schema": Annotated[list[int], operator.add]},
}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "input": lambda graph: graph.get_input_jsonschema(),
    "output": lambda graph: graph.get_output_jsonschema(),
    "context": lambda graph: graph.get_context_jsonschema(),
    "input model": lambda graph: graph.get_input_schema().model_json_schema(),
    "output model": lambda graph: graph.get_output_schema().model_json_schema(),
    "input property": lambda graph: graph.input_schema.model_json_schema(),
    "config": lambda graph: graph.get_config_jsonschema(include=["tags", "recursion_limit"]),
    "config model": lambda graph: graph.config_schema().model_json_schema(),
    "names": lambda graph: [graph.get_name(), graph.get_name("Input"), graph.get_name("tool", name="x")],
}


def answer(library: str, case: str, question: str, **options: Any) -> Any:
    graphs = importlib.import_module(f"{library}.graph")
    builder = graphs.StateGraph(**CASES[case]).add_node("work", lambda state: state).add_edge(graphs.START, "work")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return QUESTIONS[question](builder.compile(**options))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", CASES)
def test_schemas_are_those_of_langgraph(case: str, question: str) -> None:
    pytest.importorskip("langgraph")
    options = {"name": "Orders"} if case == "keys" else {}
    assert answer("graphd", case, question, **options) == answer("langgraph", case, question, **options)


def test_typed_dicts_of_the_standard_library_will_do() -> None:
    from typing import TypedDict

    Plain = TypedDict("Plain", {"name": str, "size": int}, total=False)  # noqa: UP013 - a class in a function
    graph = StateGraph(Plain).add_node("work", lambda state: state).add_edge(START, "work").compile()
    assert graph.get_input_jsonschema()["properties"] == {
        "name": {"title": "Name", "type": "string"},
        "size": {"title": "Size", "type": "integer"},
    }
    assert "required" not in graph.get_input_jsonschema()
    assert graph.get_input_schema().model_validate({"size": "3"}).root == {"size": 3}


def test_a_schema_of_the_config_is_of_yesterday() -> None:
    graph = StateGraph(Keys).add_node("work", lambda state: state).add_edge(START, "work").compile()
    with pytest.warns(DeprecationWarning, match="get_context_jsonschema"):
        graph.config_schema()
    with pytest.warns(DeprecationWarning, match="get_context_jsonschema"):
        graph.get_config_jsonschema()
    with pytest.raises(ValueError, match="include: a config has no color; it has tags"):
        answer_include(graph, ["color"])


def answer_include(graph: Any, include: list[str]) -> Any:
    pytest.importorskip("langchain_core")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return graph.config_schema(include=include)


def test_schemas_need_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = StateGraph(Keys).add_node("work", lambda state: state).add_edge(START, "work").compile()
    monkeypatch.setitem(__import__("sys").modules, "pydantic", None)
    with pytest.raises(MissingPackageError, match="a schema needs pydantic: pip install pydantic"):
        graph.get_input_jsonschema()


def test_annotations_of_keys_need_no_hash() -> None:
    class Marked(typing_extensions.TypedDict):  # type: ignore[misc, name-defined]
        sizes: list[Annotated[int, {"unit": "cm"}]]

    graph = StateGraph(Marked).add_node("node", lambda state: state).add_edge(START, "node").compile()
    assert graph.get_output_schema()(sizes=[1]).sizes == [1]
