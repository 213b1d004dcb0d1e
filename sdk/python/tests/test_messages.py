"""How two lists of messages become one: what LangGraph's add_messages does."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from graphd.graph import add_messages
from graphd.messages import AIMessage, HumanMessage, to_dict


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
