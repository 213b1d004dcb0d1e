"""A client without a graph and without nodes, against a real server."""

from __future__ import annotations

import dataclasses
import inspect
import threading
from typing import Any

import pytest

from graphd import AsyncClient, Client
from graphd.dev import DevServer
from graphd.errors import (
    AlreadyExistsError,
    CallTimeoutError,
    ConflictError,
    GraphdError,
    GraphRecursionError,
    NotFoundError,
    ServerUnavailableError,
    ThreadBusyError,
)
from graphd.remote import Answer, Dismissal, RunOptions
from graphd.remote.graphs import AsyncGraphs, Graphs
from graphd.remote.inbox import AsyncInbox, Inbox
from graphd.remote.runs import AsyncRuns, Runs
from graphd.remote.threads import AsyncThreads, Threads
from graphd.types import Command


def test_a_run_is_started_and_waited_for(client: Client) -> None:
    started = client.runs.start(
        "client-count", {"left": 3}, thread_id="client-1", options=RunOptions(metadata={"n": 1})
    )
    assert (started.thread_id, started.graph, started.metadata) == ("client-1", "client-count", {"n": 1})
    done = client.runs.wait("client-1", started.run_id, timeout=60)
    assert done.state == "succeeded" and done.is_stopped and done.failure is None
    assert done.output == {"left": 0, "log": [3, 2, 1]}
    assert client.runs.get("client-1", started.run_id) == done
    assert [one.run_id for one in client.runs.list("client-1", state="succeeded")] == [started.run_id]
    assert list(client.runs.list("client-1", state="failed")) == []


def test_a_stream_shows_what_langgraph_shows(client: Client) -> None:
    with client.runs.stream(
        "client-count", {"left": 2}, thread_id="client-2", stream_mode=["updates", "values"]
    ) as run:
        assert run.run_id and run.thread_id == "client-2"
        items = [(item.mode, item.data) for item in run]
    assert items == [
        ("values", {"left": 2, "log": []}),
        ("updates", {"step": {"left": 1, "log": [2]}}),
        ("values", {"left": 1, "log": [2]}),
        ("updates", {"step": {"left": 0, "log": [1]}}),
        ("values", {"left": 0, "log": [2, 1]}),
    ]
    assert run.run is not None and run.run.state == "succeeded"


def test_a_thread_with_its_states(client: Client) -> None:
    made = client.threads.create("client-6", graph="client-count", metadata={"user": "ann", "vip": True})
    assert (made.state, made.metadata, made.run_id) == ("idle", {"user": "ann", "vip": True}, "")
    client.runs.wait("client-6", client.runs.start("", {"left": 2}, thread_id="client-6").run_id)
    thread = client.threads.get("client-6", values=True)
    assert thread.values == {"left": 0, "log": [2, 1]} and thread.questions == ()
    assert [one.thread_id for one in client.threads.list(metadata={"user": "ann", "vip": True})] == ["client-6"]
    history = list(client.threads.get_history("client-6"))
    assert [state.values["log"] for state in history] == [[2, 1], [2], [], []]
    newest = client.threads.get_state("client-6")
    assert newest == history[0] and newest.config["configurable"]["thread_id"] == "client-6"
    earlier = client.threads.get_state("client-6", checkpoint_id=history[1].config["configurable"]["checkpoint_id"])
    assert earlier.values == {"left": 1, "log": [2]}
    assert client.threads.get_state("client-6", keys=["left"]).values == {"left": 0}
    written = client.threads.update_state("client-6", {"log": ["by hand"]}, as_node="step")
    assert written.values["log"] == [2, 1, "by hand"]
    assert client.threads.copy("client-6", "client-6-copy").graph == "client-count"
    assert client.threads.set_metadata("client-6", {"user": "bob"}).metadata == {"user": "bob"}
    client.threads.delete("client-6")
    with pytest.raises(NotFoundError):
        client.threads.get("client-6")
    with pytest.raises(AlreadyExistsError):
        client.threads.create("client-6-copy")


def test_a_run_begins_later(client: Client) -> None:
    started = client.runs.start(
        "client-count", {"left": 1}, thread_id="client-later", options=RunOptions(begin_after=0.5)
    )
    assert started.state == "queued" and started.begins_at is not None and started.created_at is not None
    assert (started.begins_at - started.created_at).total_seconds() == 0.5
    assert client.runs.wait("client-later", started.run_id, timeout=60).state == "succeeded"
    with pytest.raises(ValueError, match="begin_after is 0: want seconds above 0"):
        RunOptions(begin_after=0)
    with pytest.raises(GraphdError, match=r"run\.begin_after: is .*: want at most 8784h0m0s"):
        client.runs.start("client-count", {}, options=RunOptions(begin_after=4e7))


def test_a_run_is_cancelled(client: Client) -> None:
    client.runs.start(
        "client-count", {"left": 100_000}, thread_id="client-7", options=RunOptions(recursion_limit=10**6)
    )
    with pytest.raises(ThreadBusyError):
        client.runs.start("client-count", {"left": 1}, thread_id="client-7")
    with pytest.raises(CallTimeoutError, match=r"no answer within 0.05 s"):
        client.runs.wait("client-7", timeout=0.05)
    assert client.runs.cancel("client-7", reason="enough", wait=True).state == "cancelled"
    with pytest.raises(GraphdError) as cancelled:
        client.runs.wait("client-7")
    assert cancelled.value.reason == "CANCELLED_BY_CLIENT"


def test_a_stream_has_a_deadline(client: Client) -> None:
    options = RunOptions(recursion_limit=10**6)
    stream = client.runs.stream("client-count", {"left": 10**5}, thread_id="client-8", options=options, timeout=0.2)
    with pytest.raises(CallTimeoutError):
        list(stream)
    assert isinstance(CallTimeoutError("late"), TimeoutError)
    assert client.runs.cancel("client-8", wait=True).state == "cancelled"


def test_a_watch_goes_on_after_a_cursor(client: Client) -> None:
    with client.runs.stream("client-count", {"left": 3}, thread_id="client-9") as stream:
        first = next(stream)
    assert first.data == {"step": {"left": 2, "log": [3]}}
    rest = client.runs.watch("client-9", stream.run_id, after=first.cursor)
    assert [item.data["step"]["log"] for item in rest] == [[2], [1]]
    whole = client.runs.watch("client-9", stream.run_id)
    assert [item.data["step"]["log"] for item in whole] == [[3], [2], [1]]
    assert whole.run is not None and whole.run.output == {"left": 0, "log": [3, 2, 1]}


def test_a_cursor_skips_nothing(client: Client) -> None:
    """Where an event makes several items, a reader that goes on after the first of them gets the others."""
    modes = ["debug", "tasks"]
    items, cursors = [], []
    with client.runs.stream("client-count", {"left": 1}, thread_id="client-cursor", stream_mode=modes) as stream:
        for item in stream:
            items.append((item.mode, item.data))
            cursors.append((item.cursor, stream.cursor))
    assert [mode for mode, _ in items].count("tasks") == 2 and len(items) > 4
    for number, (cursor, reached) in enumerate(cursors, 1):
        for after in (cursor, reached):
            rest = client.runs.watch("client-cursor", stream.run_id, after=after, stream_mode=modes)
            shown = [(item.mode, item.data) for item in rest]
            assert shown[len(shown) - len(items[number:]) :] == items[number:]


def test_a_call_may_be_repeated_by_the_program(client: Client) -> None:
    options = RunOptions(request_id="once-1")
    first = client.runs.start("client-count", {"left": 1}, thread_id="client-12", options=options)
    second = client.runs.start("client-count", {"left": 1}, thread_id="client-12", options=options)
    assert first.run_id == second.run_id


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda c: c.runs.stream("g", {}, stream_mode="token"), "unknown stream mode 'token'"),
        (lambda c: c.runs.start("g", {}, options=RunOptions(when_busy="wait")), "when_busy is 'wait': want reject"),  # type: ignore[arg-type]
        (lambda c: c.runs.start("g", {}, options=RunOptions(run_timeout=0)), "run_timeout is 0: want seconds"),
        (lambda c: c.runs.resume("t", {}), "answers is empty"),
        (lambda c: c.runs.resume("t", {7: "x"}), "7 is no id of a question"),
        (lambda c: c.runs.resume("t", [Answer(1), Dismissal("no")]), "'' is no id of a question"),
        (lambda c: c.runs.watch("t", ""), "run_id is missing"),
        (lambda c: c.runs.wait("t", timeout=-1), "timeout is -1: want seconds above 0"),
        (lambda c: c.runs.cancel("t", checkpoints="drop"), "checkpoints is 'drop': want keep or rollback"),
        (lambda c: c.runs.cancel("t", grace=-1.0), "grace is -1.0"),
        (lambda c: c.threads.create(ttl=0), "ttl is 0"),
        (lambda c: c.with_timeout(0), "timeout is 0"),
        (lambda c: Client("localhost:1", timeout=0), "timeout is 0"),
    ],
)
def test_wrong_arguments_are_named(client: Client, call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call(client)


def test_a_client_needs_a_server(monkeypatch: pytest.MonkeyPatch, client: Client, server: DevServer) -> None:
    with pytest.raises(ValueError, match="server is missing: give host:port, or set GRAPHD_SERVER"):
        Client()
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    assert "client-count" in [graph.name for graph in Client().graphs.list()]
    with pytest.raises(CallTimeoutError) as late:
        Client("127.0.0.1:1", timeout=0.3).graphs.get("g")
    assert isinstance(late.value.__cause__, ServerUnavailableError)


async def test_an_async_client_does_the_same(aclient: AsyncClient) -> None:
    async with aclient.runs.stream("client-refund", {"request": "5"}, thread_id="client-a1") as stream:
        items = [item.data async for item in stream]
    assert items[0] == {"read": {"log": ["read 5"]}} and stream.run is not None and stream.run.state == "interrupted"
    (question,) = [one async for one in aclient.inbox.list(thread_id="client-a1")]
    watch = aclient.inbox.watch(thread_id="client-a1", timeout=60)
    assert (await anext(watch)).question == question
    await aclient.inbox.answer(question, {"decision": "approved"})
    assert (await anext(watch)).question.state in ("answered", "consumed")
    assert (await aclient.runs.wait("client-a1", timeout=60)).output["decision"] == "approved"
    history = [state async for state in aclient.threads.get_history("client-a1")]
    assert history[0] == await aclient.threads.get_state("client-a1") and len(history) == 5
    assert [one.state async for one in aclient.runs.list("client-a1")] == ["succeeded"]
    await aclient.threads.delete("client-a1")
    with pytest.raises(GraphdError):
        await aclient.threads.get("client-a1")


@dataclasses.dataclass
class Context:
    word: str


@pytest.mark.parametrize("context", [{"word": "hi"}, Context("hi")])
def test_a_run_has_a_context(client: Client, context: Any) -> None:
    run = client.runs.start("client-greet", {"name": "ann"}, options=RunOptions(context=context))
    assert client.runs.wait(run.thread_id).output["greeting"] == "hi ann"


def test_an_input_may_wait_or_take_over(client: Client) -> None:
    endless = RunOptions(recursion_limit=10**6)
    first = client.runs.start("client-count", {"left": 10**5}, thread_id="client-busy", options=endless)
    waiting = client.runs.start(
        "client-count", {"left": 1}, thread_id="client-busy", options=RunOptions(when_busy="enqueue")
    )
    assert waiting.state == "queued"
    last = client.runs.start(
        "client-count", {"left": 2}, thread_id="client-busy", options=RunOptions(when_busy="rollback")
    )
    assert client.runs.wait("client-busy", last.run_id, timeout=60).output == {"left": 0, "log": [2, 1]}
    assert client.runs.get("client-busy", first.run_id).state == "cancelled"


def test_limits_of_a_run_are_errors_of_their_own(client: Client) -> None:
    run = client.runs.start("client-count", {"left": 9}, options=RunOptions(recursion_limit=3))
    with pytest.raises(GraphRecursionError, match="Recursion limit of 3 reached"):
        client.runs.wait(run.thread_id)
    options = RunOptions(recursion_limit=10**6, run_timeout=0.05)
    run = client.runs.start("client-count", {"left": 10**5}, options=options)
    with pytest.raises(TimeoutError):
        client.runs.wait(run.thread_id)
    assert client.runs.get(run.thread_id, run.run_id).state == "timed_out"


def test_a_run_begins_with_a_command_or_a_checkpoint(client: Client) -> None:
    run = client.runs.start("client-count", {"left": 2}, thread_id="client-replay")
    client.runs.wait("client-replay", run.run_id)
    history = list(client.threads.get_history("client-replay"))
    checkpoint = history[1].config["configurable"]["checkpoint_id"]
    again = client.runs.start("", None, thread_id="client-replay", options=RunOptions(checkpoint_id=checkpoint))
    assert client.runs.wait("client-replay", again.run_id).output == {"left": 0, "log": [2, 1]}
    more = client.runs.start("", Command(update={"left": 1}, goto="step"), thread_id="client-replay")
    assert client.runs.wait("client-replay", more.run_id).output == {"left": 0, "log": [2, 1, 1]}
    with pytest.raises(ValueError, match=r"give it to runs\.resume or inbox\.answer"):
        client.runs.start("", Command(resume="yes"), thread_id="client-replay")
    newest = RunOptions(expected_checkpoint_id=checkpoint)
    with pytest.raises(ConflictError):
        client.runs.start("", {"left": 1}, thread_id="client-replay", options=newest)
    taken = client.runs.start("", {"left": 1}, thread_id="client-replay", options=RunOptions(checkpoint_id=checkpoint))
    assert client.runs.wait("client-replay", taken.run_id).output == {"left": 0, "log": [2, 1]}


PAIRS = [(Client, AsyncClient), (Runs, AsyncRuns), (Threads, AsyncThreads), (Inbox, AsyncInbox), (Graphs, AsyncGraphs)]


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_async_methods_are_the_same(kind: type, other: type) -> None:
    methods = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    assert methods.keys() == {name for name in vars(other) if not name.startswith("_")}
    for name, method in methods.items():
        here, there = inspect.signature(method), inspect.signature(getattr(other, name))
        assert list(here.parameters.values())[1:] == list(there.parameters.values())[1:], name


def test_a_client_is_used_from_several_threads(client: Client) -> None:
    states: list[str] = []

    def run(number: int) -> None:
        started = client.runs.start("client-count", {"left": 2}, thread_id=f"client-t{number}")
        states.append(client.runs.wait(started.thread_id, started.run_id).state)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert states == ["succeeded"] * 8
