"""Mistakes of programs: what is raised says what would be right."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any, TypedDict

import pytest

from graphd import START, Client, InMemorySaver, StateGraph
from graphd.dev import DevServer
from graphd.errors import InvalidUpdateError, ThreadBusyError
from graphd.func import entrypoint

noted = pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")


class State(TypedDict, total=False):
    number: int


def build(node: Any = lambda state: {"number": 1}) -> StateGraph:
    return StateGraph(State).add_node("node", node).add_edge(START, "node")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("localhost:7700", r"Received str\. .*compile\(server='localhost:7700'\)"),
        (InMemorySaver, r"Received type\. .*InMemorySaver\(\)"),
        (5, r"Received int\."),
    ],
)
def test_what_is_no_saver_is_refused(given: Any, told: str) -> None:
    with pytest.raises(TypeError, match=f"^Invalid checkpointer provided. .*{told}"):
        build().compile(given)
    with pytest.raises(TypeError, match=r"^Invalid checkpointer provided"):
        entrypoint(given)(lambda number: number)


def test_a_saver_of_others_without_a_server_is_told_where_threads_are(
    server: DevServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PostgresSaver:
        def get_tuple(self, config: Any) -> None: ...

    monkeypatch.setattr("graphd.compiled.attached_graph.shared_dev_server", lambda: server)
    graph = build().compile(PostgresSaver(), name="foreign-saver")
    with pytest.warns(UserWarning, match="PostgresSaver keeps nothing here: .* end with this process"):
        graph.invoke({}, {"configurable": {"thread_id": "foreign-1"}})
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build().compile(PostgresSaver(), name="foreign-saver-2").invoke(
            {}, {"configurable": {"thread_id": "foreign-2"}}
        )


@pytest.mark.parametrize("scheme", ["http", "https", "grpc"])
def test_a_server_is_no_url(scheme: str) -> None:
    address = f"{scheme}://localhost:7700"
    for call in (
        lambda: build().compile(server=address, name="url"),
        lambda: InMemorySaver(server=address).delete_thread("t"),
        lambda: Client(address),
    ):
        with pytest.raises(ValueError, match=f"^server is '{scheme}://localhost:7700': want host:port"):
            call()


def test_serve_without_a_server_is_refused() -> None:
    for saver in (None, InMemorySaver()):
        with pytest.raises(RuntimeError, match=r"serve\(\) works for a server: compile\(server='host:port'\)"):
            build().compile(saver).serve()


@noted
def test_a_missing_thread_is_explained_in_a_note(server: DevServer) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="no-thread")
    for call in (lambda: graph.invoke({}), lambda: graph.get_state({})):
        with pytest.raises(ValueError, match="thread_id") as raised:
            call()
        assert raised.value.__notes__ == ["name the thread: {'configurable': {'thread_id': 'order-1'}}"]


@noted
def test_states_without_a_saver_are_explained_in_a_note() -> None:
    with pytest.raises(ValueError, match="No checkpointer set") as raised:
        build().compile().get_state({"configurable": {"thread_id": "t"}})
    assert str(raised.value) == "No checkpointer set"
    (note,) = raised.value.__notes__
    assert "compile(InMemorySaver())" in note
    assert "compile(server='host:port')" in note


@noted
def test_a_failure_notes_its_node_as_in_langgraph(server: DevServer) -> None:
    graph = build(lambda state: [1]).compile(InMemorySaver(server=server.address), name="noted")
    with pytest.raises(InvalidUpdateError, match="Expected dict") as raised:
        graph.invoke({}, {"configurable": {"thread_id": "noted"}})
    (note,) = raised.value.__notes__
    (task,) = graph.get_state({"configurable": {"thread_id": "noted"}}).tasks
    assert note == f"During task with name 'node' and id '{task.id}'"


@pytest.mark.parametrize("keys", ["typo", ["number", "typo"]])
async def test_an_unknown_output_key_is_named(server: DevServer, keys: Any) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="unknown-output-key")
    config: Any = {"configurable": {"thread_id": "unknown-output-key"}}
    told = "^output_keys: Key typo not in channels; there are number$"
    with pytest.raises(ValueError, match=told):
        graph.invoke({"number": 0}, config, output_keys=keys)
    with pytest.raises(ValueError, match=told):
        await graph.ainvoke({"number": 0}, config, output_keys=keys)
    with pytest.raises(ValueError, match=told):
        list(graph.stream({"number": 0}, config, output_keys=keys))
    assert graph.get_state(config).values == {}, "nothing has run"


@pytest.mark.parametrize(
    ("limit", "error"), [("5", TypeError), ([], TypeError), (0, ValueError), (float("nan"), ValueError)]
)
def test_a_recursion_limit_that_is_none_is_named(server: DevServer, limit: Any, error: type[Exception]) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="recursion-limits")
    with pytest.raises(error, match=r"^recursion_limit must be "):
        graph.invoke({"number": 0}, {"configurable": {"thread_id": "bad-limit"}, "recursion_limit": limit})


@pytest.mark.parametrize("limit", [10**20, float("inf"), 2.5])
def test_a_recursion_limit_may_be_beyond_all_numbers(server: DevServer, limit: Any) -> None:
    graph = build().compile(InMemorySaver(server=server.address), name="recursion-limits")
    config: Any = {"configurable": {"thread_id": f"limit-{limit}"}, "recursion_limit": limit}
    assert graph.invoke({"number": 0}, config) == {"number": 1}


def test_a_busy_thread_says_what_a_program_can_do(server: DevServer) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow(state: State) -> State:
        begun.set()
        assert may_end.wait(60)
        return {"number": 1}

    graph = build(slow).compile(InMemorySaver(server=server.address), name="busy-thread")
    config: Any = {"configurable": {"thread_id": "busy-thread"}}
    first = threading.Thread(target=graph.invoke, args=({}, config))
    first.start()
    try:
        assert begun.wait(60)
        with pytest.raises(
            ThreadBusyError, match=r"Client\(\)\.runs\.wait, \.cancel, or \.start with RunOptions\(when_busy=…\)"
        ):
            graph.invoke({}, config)
    finally:
        may_end.set()
        first.join()
