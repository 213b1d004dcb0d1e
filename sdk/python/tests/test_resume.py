"""What a call that answers may set for the rest of the run."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.errors import (
    AmbiguousResumeError,
    GraphdError,
    GraphRecursionError,
    NothingToResumeError,
    UnknownInterruptError,
)
from graphd.graph import START, StateGraph
from graphd.runtime import Runtime
from graphd.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


class Context(TypedDict):
    who: str


def ask(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"log": [interrupt("?"), (runtime.context or {}).get("who")]}


@pytest.fixture
def graph(server: DevServer) -> Any:
    builder = StateGraph(State, Context).add_node("ask", ask).add_edge(START, "ask")
    for before, name in (("ask", "b"), ("b", "c"), ("c", "d")):
        builder.add_node(name, lambda state, name=name: {"log": [name]}).add_edge(before, name)
    return builder.compile(InMemorySaver(server=server.address))


def config(thread: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": f"resume-{thread}"}, **more}


def test_breakpoints_are_those_of_the_call(graph: Any) -> None:
    graph.invoke({"log": []}, config("1"), interrupt_before=["b"])
    state = graph.invoke(Command(resume="y"), config("1"), interrupt_before=["c"])
    assert state["log"] == ["y", None, "b"]
    state = graph.invoke(Command(resume="unused"), config("1"), interrupt_after=["c"])
    assert state["log"] == ["y", None, "b", "c"]
    assert graph.invoke(None, config("1"))["log"] == ["y", None, "b", "c", "d"]


def test_the_limit_is_that_of_the_call(graph: Any) -> None:
    graph.invoke({"log": []}, config("2", recursion_limit=2))
    graph.invoke({"log": []}, config("3"))
    assert graph.invoke(Command(resume="y"), config("2"))["log"] == ["y", None, "b", "c", "d"]
    with pytest.raises(GraphRecursionError):
        graph.invoke(Command(resume="y"), config("3", recursion_limit=1))
    assert graph.invoke(None, config("3", recursion_limit=5))["log"] == ["y", None, "b", "c", "d"]


def test_the_context_is_that_of_the_call(graph: Any) -> None:
    for thread, context, seen in (("4", {"who": "new"}, "new"), ("5", None, None)):
        graph.invoke({"log": []}, config(thread), context={"who": "old"})
        assert graph.invoke(Command(resume="y"), config(thread), context=context)["log"][:2] == ["y", seen]


def test_a_breakpoint_at_no_node_is_refused(graph: Any) -> None:
    graph.invoke({"log": []}, config("6"))
    with pytest.raises(Exception, match="zz"):
        graph.invoke(Command(resume="y"), config("6"), interrupt_before=["zz"])
    assert graph.invoke(Command(resume="y"), config("6"))["log"][0] == "y"


def test_metadata_of_the_call_is_stored(graph: Any) -> None:
    graph.invoke({"log": []}, config("7", metadata={"by": "ann"}))
    graph.invoke(Command(resume="y"), config("7", metadata={"answered": "bob"}))
    metadata = graph.get_state(config("7")).metadata
    assert (metadata["by"], metadata["answered"]) == ("ann", "bob")


def test_a_refused_answer_names_the_open_questions(server: DevServer) -> None:
    builder = StateGraph(State, Context).add_node("a", ask).add_node("b", ask)
    both = builder.add_edge(START, "a").add_edge(START, "b").compile(InMemorySaver(server=server.address))
    ids = [question.id for question in both.invoke({"log": []}, config("ids"))["__interrupt__"]]
    for answer, refusal in (("y", AmbiguousResumeError), ({"0" * 32: "y"}, GraphdError)):
        with pytest.raises(refusal) as refused:
            both.invoke(Command(resume=answer), config("ids"))
        assert all(id in str(refused.value) for id in ids)


UNKNOWN = "0" * 32


def test_a_refused_answer_has_the_fields_of_a_strict_resume(server: DevServer) -> None:
    builder = StateGraph(State, Context).add_node("a", ask).add_node("b", ask)
    both = builder.add_edge(START, "a").add_edge(START, "b").compile(InMemorySaver(server=server.address))
    ids = tuple(sorted(question.id for question in both.invoke({"log": []}, config("fields"))["__interrupt__"]))

    def refuse(answer: Any) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
        with pytest.raises(UnknownInterruptError) as refused:
            both.invoke(Command(resume=answer), config("fields"))
        error = refused.value
        return error.reason, error.server_reason, error.interrupt_ids, error.pending_ids

    assert refuse("y") == ("ambiguous", "RESPONSE_AMBIGUOUS", (), ids)
    assert refuse({UNKNOWN: "y", ids[0]: "z"}) == ("not_pending", "INTERRUPT_NOT_FOUND", (UNKNOWN,), ids)
    both.invoke(Command(resume={ids[0]: "y"}), config("fields"))
    assert refuse({ids[0]: "z"}) == ("not_pending", "INTERRUPT_ALREADY_RESOLVED", ids[:1], ids[1:])
    both.invoke(Command(resume="y"), config("fields"))
    assert refuse({ids[0]: "z"}) == ("not_pending", "INTERRUPT_ALREADY_RESOLVED", ids[:1], ())
    assert refuse("y") == ("not_pending", "THREAD_NOT_INTERRUPTED", (), ())


def test_an_error_of_a_strict_resume_is_made_as_in_langgraph() -> None:
    error = UnknownInterruptError("text", reason="empty_map", interrupt_ids=["a"], pending_ids=["b"])
    assert (str(error), error.reason, error.interrupt_ids, error.pending_ids) == ("text", "empty_map", ("a",), ("b",))


def test_a_thread_that_never_ran_waits_for_no_answer(graph: Any) -> None:
    with pytest.raises(NothingToResumeError, match="never run"):
        graph.invoke(Command(resume="x"), config("new"))
