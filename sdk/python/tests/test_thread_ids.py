"""Every text is a thread id, as for LangGraph."""

from __future__ import annotations

import re
import uuid
from typing import Any, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import END, START, StateGraph
from graphd.names import public_thread, wire_thread
from graphd.types import Command, interrupt

PLAIN = ["t1", "a:b:c", "user.7_x-Y", "a::b", "::a", "::zz:1", f"::::{'0a' * 32}", "x" * 116, 7, uuid.UUID(int=5)]
ESCAPED = [
    "",
    " ",
    "with space",
    "ann@example.org",
    "über",
    "a/b/../c",
    "日本",
    "\x00\n",
    "::",
    "::3a:20",
    "::c3:bc",
    "🙂",
    "\udc80",
    "100%",
]
DIGESTED = ["x" * 117, "ü" * 60, "y" * 100_000]


@pytest.mark.parametrize("thread", PLAIN)
def test_an_id_that_the_server_takes_is_not_changed(thread: Any) -> None:
    assert wire_thread("saver-12345.", thread) == f"saver-12345.{thread}"
    assert public_thread(wire_thread("", thread)) == str(thread)


@pytest.mark.parametrize("thread", ESCAPED)
def test_another_id_is_escaped(thread: str) -> None:
    wire = wire_thread("", thread)
    assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,128}", wire)
    assert public_thread(wire) == thread


@pytest.mark.parametrize("thread", DIGESTED)
def test_a_long_id_has_a_digest(thread: str) -> None:
    wire = wire_thread("saver-12345.", thread)
    assert re.fullmatch(r"saver-12345\.::::[0-9a-f]{64}", wire)
    assert public_thread(wire) == wire


def test_two_ids_stay_two() -> None:
    wires = [wire_thread("", thread) for thread in [*PLAIN, *ESCAPED, *DIGESTED, ":", "::3a", ":3a", "::::", "%20"]]
    assert len(set(wires)) == len(wires)


class State(TypedDict, total=False):
    thread: str
    answer: str


def ask(state: State, config: Any) -> State:
    return {"thread": config["configurable"]["thread_id"], "answer": interrupt("go on?")}


@pytest.mark.parametrize("saver", [True, False])
def test_a_thread_of_any_id_asks_and_goes_on(server: DevServer, saver: bool) -> None:
    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    where: dict[str, Any] = (
        {"checkpointer": InMemorySaver()} if saver else {"server": server.address, "name": "any-thread"}
    )
    graph = builder.compile(**where)
    for thread in ["ann@example.org/2", "日本 " * 100]:
        config = {"configurable": {"thread_id": thread}}
        assert graph.invoke({"thread": ""}, config)["__interrupt__"][0].value == "go on?"
        snapshot = graph.get_state(config)
        assert snapshot.next == ("ask",)
        assert snapshot.config["configurable"]["thread_id"] == thread
        assert graph.invoke(Command(resume="yes"), config) == {"thread": thread, "answer": "yes"}
        assert [s.config["configurable"]["thread_id"] for s in graph.get_state_history(config)] == [thread] * 3
