"""What becomes of the results and errors of tools, here and on LangGraph."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from graphd import Command, Send
from graphd.messages import from_dict
from graphd.prebuilt import ToolNode


@dataclasses.dataclass
class Parcel:
    weight: int


def answer(text: str, to: str = "c") -> Any:
    return from_dict({"type": "tool", "content": text, "tool_call_id": to})


BLOCKS = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": "y"}]
RESULTS: dict[str, tuple[Any, Any]] = {
    "text": ("t", "t"),
    "nothing": (None, "null"),
    "number": (1.5, "1.5"),
    "truth": (True, "true"),
    "object": ({"a": 1, "ä": "ü"}, '{"a": 1, "ä": "ü"}'),
    "texts": (["a", "b"], '["a", "b"]'),
    "no items": ([], []),
    "tuple": ((1, 2), "[1, 2]"),
    "blocks": (BLOCKS, BLOCKS),
    "blocks and texts": ([*BLOCKS, "z"], None),
    "other blocks": ([{"type": "unknown"}], '[{"type": "unknown"}]'),
    "set": ({1}, "{1}"),
    "bytes": (b"x", "b'x'"),
    "dataclass": (Parcel(1), "Parcel(weight=1)"),
}


def make_tool(result: Any) -> Callable[[], Any]:
    def made() -> Any:
        """Is made."""
        if isinstance(result, Exception):
            raise result
        return result

    return made


CALL = {"name": "made", "args": {}, "id": "c", "type": "tool_call"}


def run_here(tool: Any, **options: Any) -> Any:
    return ToolNode([tool], **options).invoke([CALL])


def run_there(tool: Any, **options: Any) -> Any:
    theirs = pytest.importorskip("langgraph.prebuilt")
    runtime = pytest.importorskip("langgraph.runtime").Runtime()
    return theirs.ToolNode([tool], **options).invoke([CALL], {"configurable": {"__pregel_runtime": runtime}})


def outcome(run: Callable[..., Any], tool: Any, **options: Any) -> Any:
    try:
        return run(tool, **options)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_the_text_that_models_read(name: str) -> None:
    result, expected = RESULTS[name]
    (message,) = run_here(make_tool(result))["messages"]
    assert message.status == "success"
    if expected is not None:
        assert message.content == expected


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("kind", ["function", "tool", "artifact"])
def test_results_are_those_of_langgraph(name: str, kind: str) -> None:
    lc = pytest.importorskip("langchain_core.tools")
    result, _ = RESULTS[name]
    if kind == "artifact":
        made = lc.tool(response_format="content_and_artifact")(make_tool((result, "artifact")))
    else:
        made = make_tool(result) if kind == "function" else lc.tool(make_tool(result))
    assert run_here(made) == run_there(made)


def test_a_tool_may_answer_in_several_parts() -> None:
    for result in ([answer("x")], [answer("x"), answer("y", "other")]):
        assert [m.content for m in run_here(make_tool(result))["messages"]] == [m.content for m in result]
    both = run_here(make_tool([Command(update={"user": "bob"}), answer("done")]))
    assert both == [Command(update={"user": "bob"}), {"messages": [answer("done")]}]
    for wrong in ([], [answer("x"), answer("y")], [answer("x", "other")], [Command(update={"user": "bob"})]):
        if wrong:
            with pytest.raises(ValueError, match="want exactly one that answers the call"):
                run_here(make_tool(wrong))


def test_a_command_of_a_tool_answers_the_call() -> None:
    (made,) = run_here(make_tool(Command(update={"messages": [answer("done")]})))
    assert made.update["messages"][0].name == "made"
    for wrong in ({"user": "bob"}, {"messages": [answer("x", "other")]}):
        with pytest.raises(ValueError, match="want exactly one that answers the call"):
            run_here(make_tool(Command(update=wrong)))
    for other in (Command(goto="x"), Command(graph=Command.PARENT, update={"user": "bob"})):
        assert run_here(make_tool(other)) == [other]


def test_a_command_has_an_update_of_the_kind_of_the_input() -> None:
    asking = from_dict({"type": "ai", "content": "", "tool_calls": [CALL]})
    as_dict = Command(update={"messages": [answer("done")]})
    as_list = Command(update=[answer("done")])
    assert ToolNode([make_tool(as_list)]).invoke([asking])[0].update[0].name == "made"
    assert ToolNode([make_tool(as_dict)]).invoke({"messages": [asking]})[0].update["messages"][0].name == "made"
    with pytest.raises(ValueError, match="want a list of messages"):
        ToolNode([make_tool(as_dict)]).invoke([asking])
    with pytest.raises(ValueError, match="want a dict with 'messages'"):
        ToolNode([make_tool(as_list)]).invoke({"messages": [asking]})


def test_sends_to_the_enclosing_graph_are_one_command() -> None:
    sends = [Send("a", 1), Send("b", 2)]
    tools = [make_tool(Command(graph=Command.PARENT, goto=[send])) for send in sends]
    tools[1].__name__ = "other"
    calls = [CALL, {**CALL, "name": "other", "id": "d"}]
    assert ToolNode(tools).invoke(calls) == [Command(graph=Command.PARENT, goto=sends)]


def values_only(error: ValueError) -> str:
    return f"value: {error}"


def two_kinds(error: ValueError | KeyError) -> str:
    return "one of two"


def untyped(error):  # type: ignore[no-untyped-def]
    return "any"


class Handler:
    def explain(self, error: KeyError) -> str:
        return "by a method"


HANDLERS: list[Any] = [
    True,
    False,
    "text",
    ValueError,
    (ValueError, KeyError),
    values_only,
    two_kinds,
    untyped,
    Handler().explain,
]


@pytest.mark.parametrize("handler", HANDLERS, ids=str)
@pytest.mark.parametrize("error", [ValueError("v"), KeyError("k"), RuntimeError("r")], ids=repr)
def test_errors_are_handled_as_on_langgraph(handler: Any, error: Exception) -> None:
    made = make_tool(error)
    assert outcome(run_here, made, handle_tool_errors=handler) == outcome(run_there, made, handle_tool_errors=handler)


def test_a_handler_of_what_is_no_error_is_refused() -> None:
    def wrong(error: int) -> str:
        return ""

    with pytest.raises(ValueError, match="handle_tool_errors: wrong takes int; want an Exception"):
        ToolNode([make_tool(1)], handle_tool_errors=wrong)  # type: ignore[arg-type]
