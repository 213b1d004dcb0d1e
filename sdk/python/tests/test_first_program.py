"""The first program of the README: two nodes and a question."""

from __future__ import annotations

import operator
import socket
import subprocess
import sys
import time
from typing import Annotated, TypedDict

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.graph import END, START, StateGraph
from graphd.types import Command, Interrupt, interrupt


class State(TypedDict):
    done: Annotated[list[str], operator.add]
    answer: str


def prepare(state: State) -> dict:
    return {"done": ["prepare"]}


def ask(state: State) -> dict:
    answer = interrupt({"refund": 10, "done": state["done"]})
    return {"done": ["ask"], "answer": answer}


def build() -> StateGraph:
    builder = StateGraph(State)
    builder.add_node(prepare)
    builder.add_node(ask)
    builder.add_edge(START, "prepare")
    builder.add_edge("prepare", "ask")
    builder.add_edge("ask", END)
    return builder


def test_question_and_answer(server: DevServer) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="first")
    config = {"configurable": {"thread_id": "first-1"}}
    asked = graph.invoke({"done": ["in"]}, config)
    assert asked["done"] == ["in", "prepare"]
    (question,) = asked["__interrupt__"]
    assert isinstance(question, Interrupt)
    assert question.value == {"refund": 10, "done": ["in", "prepare"]}
    assert graph.get_state(config).next == ("ask",)
    answered = graph.invoke(Command(resume="yes"), config)
    assert answered == {"done": ["in", "prepare", "ask"], "answer": "yes"}
    assert graph.get_state(config).next == ()


def test_stream_of_updates(server: DevServer) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="first")
    config = {"configurable": {"thread_id": "first-2"}}
    items = list(graph.stream({"done": []}, config))
    assert items[0] == {"prepare": {"done": ["prepare"]}}
    assert items[1]["__interrupt__"][0].value["refund"] == 10
    assert list(graph.stream(Command(resume="no"), config)) == [{"ask": {"done": ["ask"], "answer": "no"}}]


def test_the_caller_sees_why_a_schema_refuses_the_state(server: DevServer) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Checked(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        number: int

    builder = StateGraph(Checked).add_node("node", lambda state: {"number": state.number + 1}).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="checked")
    assert graph.invoke({"number": "1"}, {"configurable": {"thread_id": "checked-1"}}) == {"number": 2}
    with pytest.raises(pydantic.ValidationError, match="valid integer"):
        graph.invoke({"number": "one"}, {"configurable": {"thread_id": "checked-2"}})


def test_the_error_of_a_schema_names_the_place_inside_of_a_value(server: DevServer) -> None:
    pydantic = pytest.importorskip("pydantic")

    item = pydantic.create_model("Item", price=(int, ...))
    basket = pydantic.create_model("Basket", items=(list[item], ...))
    builder = StateGraph(basket).add_node("node", lambda state: None).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="basket")
    with pytest.raises(pydantic.ValidationError) as caught:
        graph.invoke({"items": [{"price": 1}, {"price": "dear"}]}, {"configurable": {"thread_id": "basket-1"}})
    assert [(error["loc"], error["type"]) for error in caught.value.errors()] == [
        (("items", 1, "price"), "int_parsing")
    ]


def test_a_run_without_a_saver_shows_no_checkpoints(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.compiled.attached_graph.shared_dev_server", lambda: server)
    builder = StateGraph(State).add_node(prepare).add_edge(START, "prepare")
    graph = builder.compile(name="passing")
    assert list(graph.stream({"done": []}, stream_mode="checkpoints")) == []
    assert [item["type"] for item in graph.stream({"done": []}, stream_mode="debug")] == ["task", "task_result"]


def test_the_environment_names_the_server(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    config = {"configurable": {"thread_id": "environment-1"}}
    for saver in (None, InMemorySaver()):  # a second process, so to speak
        graph = StateGraph(State).add_node(ask).add_edge(START, "ask").compile(saver, name="environment")
        given = {"done": []} if saver is None else Command(resume="yes")
        result = graph.invoke(given, config)
        graph.detach()
    assert result == {"done": ["ask"], "answer": "yes"}


def test_the_local_server_ends_with_a_process_that_was_killed() -> None:
    program = "import graphd, time\nprint(graphd.dev().port, flush=True)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert _serves(port)
        process.kill()
    deadline = time.monotonic() + 60
    while _serves(port):
        assert time.monotonic() < deadline, "the server lives on"
        time.sleep(0.05)


def _serves(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0
