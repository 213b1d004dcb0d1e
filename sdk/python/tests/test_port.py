"""A program written for LangGraph runs after changing its imports."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from graphd.dev import DevServer

PROGRAM = """
import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt


class Review(TypedDict):
    order: str
    notes: Annotated[list[str], operator.add]
    verdict: str


class Item(TypedDict):
    name: str
    notes: Annotated[list[str], operator.add]


def approve(state: Item):
    answer = interrupt({"approve": state["name"]})
    return {"notes": [f"{state['name']}:{answer}"]}


def intake(state: Review):
    get_stream_writer()({"reading": state["order"]})
    who = interrupt("who asks?")
    why = interrupt("why?")
    return {"notes": [f"{who} because {why}"]}


def fan_out(state: Review):
    return [Send("item", {"name": name, "notes": []}) for name in state["order"].split()]


def left(state: Review):
    return {"notes": ["left " + interrupt("left?")]}


def right(state: Review):
    return {"notes": ["right " + interrupt("right?")]}


def decide(state: Review):
    verdict = "refuse" if any("no" in note for note in state["notes"]) else "pay"
    return Command(update={"verdict": verdict}, goto="paid" if verdict == "pay" else END)


def paid(state: Review):
    return {"notes": ["paid"]}


child = StateGraph(Item)
child.add_node("approve", approve)
child.add_edge(START, "approve")

builder = StateGraph(Review)
builder.add_node("intake", intake)
builder.add_node("item", child.compile())
builder.add_node("left", left)
builder.add_node("right", right)
builder.add_node("decide", decide)
builder.add_node("paid", paid)
builder.add_edge(START, "intake")
builder.add_conditional_edges("intake", fan_out, ["item"])
builder.add_edge("item", "left")
builder.add_edge("item", "right")
builder.add_edge(["left", "right"], "decide")
graph = builder.compile(InMemorySaver())

out = []
config = {"configurable": {"thread_id": "1"}}


def ask(given):
    result = graph.invoke(given, config)
    asked = sorted(result.get("__interrupt__", []), key=lambda i: str(i.value))
    out.append(({k: v for k, v in result.items() if k != "__interrupt__"}, [i.value for i in asked]))
    return {i.id: i.value for i in asked}


ask({"order": "cup pot", "notes": [], "verdict": ""})
ask(Command(resume="ann"))
questions = ask(Command(resume="broken"))
questions = ask(Command(resume={id: "ok" for id in questions}))
ask(Command(resume={id: "fine" for id in questions}))
out.append(graph.get_state(config).next)
history = list(graph.get_state_history(config))
out.append([(s.values.get("verdict"), s.next, s.metadata["step"], s.metadata["source"]) for s in history])

before = next(s for s in history if s.next == ("decide",))
fork = graph.update_state(before.config, {"notes": ["no way"]}, as_node="left")
fork = graph.update_state(before.config, {"notes": ["no way"]}, as_node="right")
out.append(graph.get_state(fork).values)
out.append([p for p in graph.stream({"order": "mug", "notes": [], "verdict": ""}, config, stream_mode=["updates", "custom"])][0])
"""


def run(program: str, name: str) -> list[Any]:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(program, name, "exec", dont_inherit=True), names)
    return names["out"]  # type: ignore[no-any-return]


EXPECTED_STATES = [
    ({"order": "cup pot", "notes": [], "verdict": ""}, ["who asks?"]),
    ({"order": "cup pot", "notes": [], "verdict": ""}, ["why?"]),
]


def test_the_program_runs(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.client.attached.shared_dev_server", lambda: server)
    monkeypatch.setattr("graphd.checkpoint.memory.shared_dev_server", lambda: server)
    out = run(PROGRAM.replace("langgraph", "graphd"), "ported")
    assert out[:2] == EXPECTED_STATES
    assert sorted(q["approve"] for q in out[2][1]) == ["cup", "pot"]
    assert out[4][0]["notes"] == ["ann because broken", "cup:ok", "pot:ok", "left fine", "right fine", "paid"]
    assert out[4][0]["verdict"] == "pay"
    if importlib.util.find_spec("langgraph"):
        assert out == run(PROGRAM, "original")
