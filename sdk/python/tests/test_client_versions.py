"""Calls of clients on threads of another version, or of another graph."""

from __future__ import annotations

import pytest

from graphd import START, Client, MessagesState, StateGraph
from graphd.dev import DevServer
from graphd.errors import AlreadyExistsError, GraphdError, OpenQuestionsError
from graphd.remote import Answer, RunOptions

DOCUMENT = """
graph: GRAPH
version: VERSION
channels: { decision: {} }
nodes:
  ask:
    ask: { message: "'VERSION?'", update: { decision: "'VERSION: ' + answer" } }
edges:
  - START -> ask -> END
"""


def put(client: Client, graph: str, version: str) -> None:
    client.graphs.put(DOCUMENT.replace("GRAPH", graph).replace("VERSION", version))


def ask(client: Client, graph: str, thread_id: str) -> None:
    """A thread that waits on version one."""
    run = client.runs.start(graph, {}, thread_id=thread_id, options=RunOptions(version="one"))
    client.runs.wait(thread_id, run.run_id, timeout=60)


def messages(client: Client, thread_id: str) -> list[str]:
    return [question.message for question in client.inbox.list(thread_id=thread_id)]


def test_a_thread_that_waits_moves_when_the_call_says_so(client: Client) -> None:
    for version in ("one", "two"):
        put(client, "versions-moved", version)
    ask(client, "versions-moved", "versions-1")
    for given in (None, {"decision": "none"}):
        with pytest.raises(OpenQuestionsError):
            client.runs.start("versions-moved", given, thread_id="versions-1", options=RunOptions(version="two"))
    with pytest.raises(GraphdError) as unknown:
        client.runs.start("versions-moved", thread_id="versions-1", options=RunOptions(version="three"))
    assert unknown.value.reason == "GRAPH_VERSION_UNAVAILABLE"
    assert messages(client, "versions-1") == ["one?"] and client.threads.get("versions-1").version == "one"
    options = RunOptions(version="two", open_questions="discard")
    run = client.runs.start("versions-moved", thread_id="versions-1", options=options)
    client.runs.wait("versions-1", run.run_id, timeout=60)
    assert messages(client, "versions-1") == ["two?"] and client.threads.get("versions-1").version == "two"
    client.runs.resume("versions-1", Answer("yes"))
    assert client.runs.wait("versions-1", timeout=60).output == {"decision": "two: yes"}


def test_a_thread_of_another_graph_is_named_as_that(client: Client, server: DevServer) -> None:
    for graph in ("versions-bill", "versions-letter"):
        put(client, graph, "one")
    ask(client, "versions-bill", "versions-2")
    with pytest.raises(AlreadyExistsError) as refused:
        client.runs.start("versions-letter", {}, thread_id="versions-2")
    assert refused.value.reason == "INVALID_FIELD"
    assert refused.value.metadata["graph"] == "versions-bill"
    builder = StateGraph(MessagesState).add_node("talk", lambda state: {}).add_edge(START, "talk")
    graph = builder.compile(server=server.address, name="versions-talk")
    with pytest.raises(AlreadyExistsError) as called:
        graph.invoke({"messages": ["hi"]}, {"configurable": {"thread_id": "versions-2"}})
    assert called.value.metadata["graph"] == "versions-bill"
    assert messages(client, "versions-2") == ["one?"]
