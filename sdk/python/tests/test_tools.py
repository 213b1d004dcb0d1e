"""Tools: what the graph fills in, what models and people get wrong, LangChain's own."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import pytest

from graphd import START, Command, InMemorySaver, MessagesState, StateGraph
from graphd.dev import DevServer
from graphd.errors import GraphdError
from graphd.messages import AIMessage
from graphd.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime, add_human_in_the_loop
from graphd.prebuilt.arguments import WrongArgumentsError, build_check


class State(MessagesState):
    user: str


def graph(
    server: DevServer, name: str, tools: list[Any], calls: list[tuple[str, dict[str, Any]]], **options: Any
) -> Any:
    made = [{"name": tool, "args": args, "id": f"c{i}", "type": "tool_call"} for i, (tool, args) in enumerate(calls)]
    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [AIMessage("", id="ai", tool_calls=made)]})
    builder.add_node("tools", ToolNode(tools, **options))
    builder.add_edge(START, "model").add_edge("model", "tools")
    return builder.compile(InMemorySaver(server=server.address), name=name, store={"shelf": 7})


def run(compiled: Any, given: Any = None) -> list[tuple[str, str]]:
    given = given or {"messages": [{"type": "human", "content": "go", "id": "h"}], "user": "ann"}
    done = compiled.invoke(given, {"configurable": {"thread_id": compiled.name}})
    return [(m.content, m.status) for m in done["messages"] if m.type == "tool"]


def whole(x: int, state: Annotated[dict[str, Any], InjectedState]) -> str:
    return f"{x} of {state['user']}, {len(state['messages'])} messages"


async def part(x: int, user: Annotated[str, InjectedState("user")]) -> str:
    return f"{x} of {user}"


def shelf(store: Annotated[Any, InjectedStore]) -> int:
    return int(store["shelf"])


def told(x: int, runtime: ToolRuntime) -> str:
    runtime.stream_writer("event")
    return f"{x} in {runtime.tool_call_id} of {runtime.state['user']}"


def test_the_graph_fills_arguments_in(server: DevServer) -> None:
    calls = [("whole", {"x": 1}), ("part", {"x": 2}), ("shelf", {}), ("told", {"x": 3})]
    contents = [content for content, _ in run(graph(server, "filled", [whole, part, shelf, told], calls))]
    assert contents == ["1 of ann, 2 messages", "2 of ann", "7", "3 in c3 of ann"]


def test_a_model_may_not_fill_them_in_itself(server: DevServer) -> None:
    assert run(graph(server, "forged", [part], [("part", {"x": 1, "user": "root"})])) == [("1 of ann", "success")]


def test_people_are_not_shown_what_the_graph_fills_in(server: DevServer) -> None:
    compiled = graph(server, "shown", [add_human_in_the_loop(part)], [("part", {"x": 1})])
    asked = compiled.invoke({"messages": ["go"], "user": "ann"}, {"configurable": {"thread_id": "shown"}})
    assert asked["__interrupt__"][0].value["action_request"] == {"action": "part", "args": {"x": 1}}
    assert run(compiled, Command(resume={"type": "edit", "args": {"args": {"x": 2}}})) == [("2 of ann", "success")]


def test_models_are_told_of_wrong_arguments_and_nothing_else(server: DevServer) -> None:
    def broken(x: int) -> str:
        raise ZeroDivisionError("broken")

    ((content, status),) = run(graph(server, "wrong", [broken], [("broken", {"y": 1})]))
    assert status == "error"
    assert content.startswith("Error invoking tool 'broken' with kwargs {'y': 1} with error:\n x: Field required")
    with pytest.raises(ZeroDivisionError):
        run(graph(server, "broken", [broken], [("broken", {"x": 1})]))
    told = run(graph(server, "handled", [broken], [("broken", {"x": 1})], handle_tool_errors=True))
    assert told == [("Error: ZeroDivisionError('broken')\n Please fix your mistakes.", "error")]


WRONG_ANSWERS = [
    "yes",
    {},
    {"type": "perhaps"},
    {"type": "ignore"},
    {"type": "edit"},
    {"type": "edit", "args": "x=2"},
    [],
    [{"type": "accept"}, {"type": "accept"}],
]


def test_a_wrong_answer_leaves_the_question_open(server: DevServer) -> None:
    tool = add_human_in_the_loop(whole, interrupt_config={"allow_accept": True, "allow_edit": True})
    compiled = graph(server, "review", [tool], [("whole", {"x": 1})])
    compiled.invoke({"messages": ["go"], "user": "ann"}, {"configurable": {"thread_id": "review"}})
    for answer in WRONG_ANSWERS:
        with pytest.raises(GraphdError) as refused:
            run(compiled, Command(resume=answer))
        assert refused.value.reason == "RESPONSE_SCHEMA_MISMATCH", answer
    assert run(compiled, Command(resume=[{"type": "accept"}])) == [("1 of ann, 2 messages", "success")]


def paid(amount: int, note: str = "-") -> str:
    return f"paid {amount!r} {note!r}"


async def later(amounts: list[float], **rest: Any) -> str:
    return f"{amounts!r} {rest!r}"


GIVEN: list[tuple[str, dict[str, Any], str, str]] = [
    ("paid", {"amount": "2"}, "paid 2 '-'", "success"),
    ("paid", {"amount": 2, "note": "n", "unknown": 1}, "paid 2 'n'", "success"),
    ("paid", {"amount": "abc"}, "amount: Input should be a valid integer", "error"),
    ("paid", {"amount": 1, "note": 7}, "note: Input should be a valid string", "error"),
    ("paid", {"note": "n"}, "amount: Field required", "error"),
    ("later", {"amounts": ["1", 2], "kind": "a"}, "[1.0, 2.0] {'kind': 'a'}", "success"),
]


def test_arguments_are_checked_by_the_signature(server: DevServer) -> None:
    compiled = graph(server, "checked", [paid, later], [(name, given) for name, given, _, _ in GIVEN])
    for (name, given, expected, status), (content, got) in zip(GIVEN, run(compiled), strict=True):
        assert got == status, content
        if status == "error":
            assert content.startswith(f"Error invoking tool '{name}' with kwargs {given} with error:\n {expected}")
        else:
            assert content == expected


def test_arguments_are_checked_without_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    check = build_check(paid, ())
    assert check({"amount": "2", "unknown": 1}) == {"amount": 2}
    for given, said in [
        ({"amount": "abc"}, "amount: Input should be a valid integer"),
        ({"amount": True}, "amount: Input should be a valid integer"),
        ({"note": 7}, "amount: Field required\nnote: Input should be a valid string"),
    ]:
        with pytest.raises(WrongArgumentsError, match=f"^{said}$"):
            check(given)


def test_langgraph_answers_wrong_arguments_alike(server: DevServer) -> None:
    pytest.importorskip("langgraph.prebuilt")
    from langchain_core.messages import AIMessage as TheirMessage
    from langgraph.graph import MessagesState as TheirState
    from langgraph.graph import StateGraph as TheirGraph
    from langgraph.prebuilt import ToolNode as TheirNode

    def pay(amount: int, note: str = "-") -> str:
        """Pays."""
        return f"paid {amount!r} {note!r}"

    calls = [("pay", given) for name, given, _, _ in GIVEN if name == "paid"]
    made = [{"name": tool, "args": args, "id": f"c{i}", "type": "tool_call"} for i, (tool, args) in enumerate(calls)]
    theirs = TheirGraph(TheirState).add_node("tools", TheirNode([pay])).add_edge("__start__", "tools").compile()
    answered = theirs.invoke({"messages": [TheirMessage("", id="ai", tool_calls=made)]})["messages"][1:]
    assert run(graph(server, "alike", [pay], calls)) == [(m.content, m.status) for m in answered]
