"""How two lists of messages become one: what LangGraph's add_messages does."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from graphd import START, Client, InMemorySaver, MessagesState, StateGraph
from graphd.dev import DevServer
from graphd.graph import add_messages
from graphd.messages import AIMessage, HumanMessage, ToolMessage, coerce_written, to_dict


def human(content: str, id: str | None = None) -> dict[str, Any]:
    return {"type": "human", "content": content} | ({"id": id} if id else {})


def ai(content: str, id: str | None = None) -> dict[str, Any]:
    return {"type": "ai", "content": content} | ({"id": id} if id else {})


def remove(id: str) -> dict[str, Any]:
    return {"type": "remove", "id": id}


EVERYTHING = remove("__remove_all__")
TWO = [human("a", "1"), human("b", "2")]

CASES: dict[str, tuple[Any, Any, Any]] = {
    "one is appended": ([human("a", "1")], ai("b", "2"), [human("a", "1"), ai("b", "2")]),
    "several are appended": (
        [human("a", "1")],
        [ai("b", "2"), human("c", "3")],
        [human("a", "1"), ai("b", "2"), human("c", "3")],
    ),
    "a known id is replaced in its place": (TWO, human("A!", "1"), [human("A!", "1"), human("b", "2")]),
    "missing ids are made": ([human("a")], [ai("b")], [human("a", "<uuid>"), ai("b", "<uuid>")]),
    "the last of an id in one list wins, at the first one's place": ([], [ai("x", "1"), ai("y", "1")], [ai("y", "1")]),
    "said twice and removed in one list": ([], [ai("x", "1"), ai("y", "1"), remove("1")], []),
    "removed": (TWO, remove("1"), [human("b", "2")]),
    "removed twice": (TWO, [remove("2"), remove("2")], [human("a", "1")]),
    "removed and said again": (TWO, [remove("1"), human("new", "1")], [human("new", "1"), human("b", "2")]),
    "all at once": (
        [human("a", "1"), ai("b", "2")],
        [human("a2", "1"), remove("2"), ai("c", "3")],
        [human("a2", "1"), ai("c", "3")],
    ),
    "everything is removed": (TWO, [EVERYTHING], []),
    "what follows the removal of everything stays": (
        [human("a", "1")],
        [human("gone", "2"), EVERYTHING, ai("c", "3")],
        [ai("c", "3")],
    ),
    "nothing": ([], [], []),
    "pairs, dicts and strings": (
        [("human", "hi")],
        [{"role": "assistant", "content": "yo"}, "plain"],
        [human("hi", "<uuid>"), ai("yo", "<uuid>"), human("plain", "<uuid>")],
    ),
}


def shown(messages: Any) -> list[dict[str, Any]]:
    found = []
    for message in messages:
        said = {k: v for k, v in to_dict(message).items() if k in ("type", "content", "id")}
        try:
            uuid.UUID(said["id"])
            said["id"] = "<uuid>"
        except ValueError:
            pass
        found.append(said)
    return found


@pytest.mark.parametrize("name", CASES)
def test_two_lists_become_one(name: str) -> None:
    left, right, expected = CASES[name]
    assert shown(add_messages(left, right)) == expected


def test_an_unknown_message_cannot_be_removed() -> None:
    with pytest.raises(ValueError, match="'9'"):
        add_messages([human("a", "1")], remove("9"))


def test_objects_are_taken_as_they_are() -> None:
    merged = add_messages([HumanMessage("a", id="1")], AIMessage("b", id="2"))
    assert [type(m).__name__ for m in merged] == ["HumanMessage", "AIMessage"]


OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
TOOL_CALL = {"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}


@pytest.mark.parametrize("place", ["input", "node", "update"])
def test_forms_of_chat_apis_are_read_as_langchain_reads_them(server: DevServer, place: str) -> None:
    pytest.importorskip("langchain_core")
    written: list[Any] = [
        {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
        {"role": "tool", "content": "yes", "tool_call_id": "c1"},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": None},
        ("developer", "be brief"),
        ["developer", "be brief"],
        AIMessage("as it is"),
    ]
    seen = write_messages(server, place, written)
    assert [m.type for m in seen] == ["ai", "tool", "system", "human", "system", "system", "ai"]
    assert seen[0].tool_calls == [TOOL_CALL]
    assert [m.content for m in seen[2:]] == ["be brief", "", "be brief", "be brief", "as it is"]


@pytest.mark.parametrize("place", ["input", "node", "update"])
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"type": "tool", "content": "x"}, "it has no 'tool_call_id'"),
        ({"type": "ai", "content": 5}, "5"),
        ({"type": "sphinx", "content": "?"}, "sphinx"),
    ],
    ids=["tool", "ai", "sphinx"],
)
def test_what_is_no_message_is_named_and_not_stored(server: DevServer, place: str, bad: Any, why: str) -> None:
    pytest.importorskip("langchain_core")
    with pytest.raises(ValueError, match=r"the value of 'messages' can't be stored: message 1 is none: ") as raised:
        write_messages(server, place, ["hi", bad])
    assert why in str(raised.value)


def test_messages_of_other_clients_that_are_none_stay_readable(server: DevServer, client: Client) -> None:
    name = f"read-{uuid.uuid4().hex}"
    graph = build_writer(server, name, [])
    thread = {"configurable": {"thread_id": name}}
    graph.invoke({"messages": ["hi"]}, thread)
    bad = {"type": "tool", "content": "x", "id": "1"}
    client.threads.update_state(name, {"messages": [bad]}, as_node="writes")
    assert graph.get_state(thread).values["messages"][-1] in (bad, ToolMessage("x", id="1"))
    assert len(graph.invoke({"messages": ["again"]}, thread)["messages"]) == 3


def build_writer(server: DevServer, name: str, written: list[Any]) -> Any:
    builder = StateGraph(MessagesState).add_node("writes", lambda state: {"messages": written})
    return builder.add_edge(START, "writes").compile(InMemorySaver(server=server.address), name=name)


def write_messages(server: DevServer, place: str, written: list[Any]) -> list[Any]:
    """The state after messages were written as an input, by a node, or in an update by hand."""
    name = f"write-{uuid.uuid4().hex}"
    graph = build_writer(server, name, written if place == "node" else [])
    thread = {"configurable": {"thread_id": name}}
    if place == "update":
        graph.update_state(thread, {"messages": written}, as_node="writes")
    else:
        graph.invoke({"messages": written if place == "input" else []}, thread)
    return list(graph.get_state(thread).values["messages"])


def test_a_message_whose_type_is_no_text_is_named() -> None:
    with pytest.raises(ValueError, match=r"'messages'.*message 1"):
        coerce_written("messages", [human("a"), {"type": ["human"], "content": "b"}])
