"""Mistakes that type checkers find: mypy and pyright fail when a line below is right for them."""

from __future__ import annotations

from typing import Literal, TypedDict

from graphd import memo
from graphd.graph import START, StateGraph
from graphd.graph.state import CompiledStateGraph
from graphd.types import Command, RetryPolicy, Send, interrupt


class State(TypedDict):
    """A state with a key."""

    total: int


def leave(state: State) -> Command[Literal["pay"]]:
    """Goes somewhere else than it says."""
    return Command(update=state, goto="refuse")  # type: ignore[arg-type]


def charge(state: State) -> str:
    """Takes the number of a memo for a text."""
    return memo("charge", lambda: state["total"])  # type: ignore[return-value]


def ask(state: State) -> State:
    """Asks with a rule that there is not."""
    interrupt(state["total"], drift="sometimes")  # type: ignore[call-overload]
    interrupt("go on?", timeout=3)  # type: ignore[call-overload]
    return state


def build() -> CompiledStateGraph[State]:
    """Declares a graph with wrong arguments."""
    builder = StateGraph[State](State)
    builder.add_node("ask", ask, retry_policy=RetryPolicy(max_attempts="2"))  # type: ignore[arg-type]
    builder.add_edge(START, 1)  # type: ignore[arg-type]
    builder.add_node("send", lambda state: Send(state))  # type: ignore[call-arg]
    return builder.compile(server=7700)  # type: ignore[arg-type]


def read(graph: CompiledStateGraph[State]) -> str:
    """Takes a tuple of names for one, and misses a method."""
    graph.run({"total": 1})  # type: ignore[attr-defined]
    return graph.get_state({"configurable": {"thread_id": "t"}}).next  # type: ignore[return-value]
