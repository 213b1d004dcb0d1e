"""What a client returns has the ids and names that programs use, and takes them again."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from graphd import START, AsyncClient, Client, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.remote import Question
from tests.graph_documents import the_question

THREADS = ["ä", "ann@example.org/2", "日本 " * 100, ""]


def ask(client: Client, thread: str) -> Question:
    """The question of a new run."""
    run = client.runs.start("client-refund", {"request": "8841"}, thread_id=thread)
    client.runs.wait(thread, run.run_id)
    return the_question(client, thread)


@pytest.mark.parametrize("thread", THREADS)
def test_a_question_is_found_by_its_thread(client: Client, thread: str) -> None:
    asked = ask(client, thread)
    assert [q.question_id for q in client.inbox.list(graph="client-refund") if q.thread_id == asked.thread_id] == [
        asked.question_id
    ]
    assert next(client.inbox.watch(thread_id=thread, timeout=60)).question == asked
    assert next(client.inbox.watch(thread_id=asked.thread_id, timeout=60)).question == asked
    assert client.threads.get(thread, values=True).questions == (asked,)
    client.threads.delete(thread)


@pytest.mark.parametrize("thread", THREADS)
def test_what_was_read_is_taken_again(client: Client, thread: str) -> None:
    question = ask(client, thread)
    assert client.inbox.get(question.thread_id, question.question_id) == question
    assert client.inbox.comment(question, "hm").kind == "commented"
    assert [e.kind for e in client.inbox.trail(question)] == ["asked", "commented"]
    question = client.inbox.update(client.inbox.get(thread, question.question_id), assignees=["ana"])
    run = client.inbox.answer(question, {"decision": "approved"})
    assert client.runs.wait(run.thread_id, run.run_id).output["decision"] == "approved"
    assert [r.run_id for r in client.runs.list(run.thread_id)] == [run.run_id]
    with client.runs.watch(run.thread_id, run.run_id) as stream:
        assert stream.thread_id == run.thread_id and stream.run is not None and stream.run.thread_id == run.thread_id
    copied = client.threads.copy(run.thread_id, f"{thread} copied")
    for one in (copied.thread_id, run.thread_id):
        assert client.threads.get_state(one).values["decision"] == "approved"
        client.threads.delete(one)


@pytest.mark.parametrize("thread", [t for t in THREADS if len(t) < 100])
def test_an_id_is_shown_as_it_was_given(client: Client, thread: str) -> None:
    asked = ask(client, thread)
    assert asked.thread_id == thread
    assert [o.thread_id for o in client.inbox.answer_many([asked], {"decision": "approved"})] == [thread]
    run = client.runs.wait(thread)
    assert run.thread_id == client.threads.get(thread).thread_id == thread
    with client.runs.watch(thread, run.run_id, stream_mode="checkpoints") as stream:
        assert {item.data["config"]["configurable"]["thread_id"] for item in stream} == {thread}
        assert stream.thread_id == thread
    client.threads.delete(thread)


async def test_async_programs_find_questions_by_any_thread(client: Client, aclient: AsyncClient) -> None:
    asked = ask(client, "ä async")
    assert [q async for q in aclient.inbox.list(thread_id="ä async")] == [asked]
    async for change in aclient.inbox.watch(thread_id="ä async", timeout=60):
        assert change.question == asked
        break
    client.threads.delete("ä async")


class State(TypedDict, total=False):
    log: str


def refuse(state: State) -> State:
    raise ValueError("no")


def ask_again(state: State, error: Any) -> State:
    return {"log": interrupt("what now?")}


def test_a_question_is_found_by_the_node_that_it_names(client: Client, server: DevServer) -> None:
    builder = StateGraph(State).add_node("refuse", refuse, error_handler=ask_again).add_edge(START, "refuse")
    graph = builder.compile(server=server.address, name="client-handler")
    graph.invoke({}, {"configurable": {"thread_id": "client-handler"}})
    asked = the_question(client, "client-handler")
    assert asked.node == "__error_handler__refuse"
    assert list(client.inbox.list(graph="client-handler", node=asked.node)) == [asked]
    client.threads.delete("client-handler")
