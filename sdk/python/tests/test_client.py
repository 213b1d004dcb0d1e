"""A client without a graph and without nodes, against a real server."""

from __future__ import annotations

import inspect
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphd import AsyncClient, Client, Security
from graphd.dev import DevServer, dev, graphd_command
from graphd.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CallTimeoutError,
    GraphdError,
    InvalidResumeError,
    NotFoundError,
    NothingToResumeError,
    OpenQuestionsError,
    ServerUnavailableError,
    ThreadBusyError,
)
from graphd.remote import Answer, Dismissal, Question, RunOptions
from graphd.remote.graphs import AsyncGraphs, Graphs
from graphd.remote.inbox import AsyncInbox, Inbox
from graphd.remote.runs import AsyncRuns, Runs
from graphd.remote.threads import AsyncThreads, Threads
from graphd.types import Interrupt
from tests.graph_documents import COUNT, REFUND


@pytest.fixture(scope="module")
def client(server: DevServer) -> Client:
    made = Client(server.address)
    for document in (REFUND, COUNT):
        made.graphs.put(document)
    return made


@pytest.fixture
def aclient(client: Client, server: DevServer) -> AsyncClient:
    return AsyncClient(server.address)


def the_question(client: Client, thread: str) -> Question:
    (question,) = client.inbox.list(thread_id=thread)
    return question


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


def test_a_question_is_answered_from_the_inbox(client: Client) -> None:
    with client.runs.stream("client-refund", {"request": "8841"}, thread_id="client-3") as run:
        *_, last = run
    assert run.run is not None and run.run.state == "interrupted"
    question = the_question(client, "client-3")
    assert run.run.open_question_ids == (question.question_id,)
    asked = Interrupt({"request": "8841"}, question.question_id, response_schema=question.schema)
    assert last.data == {"__interrupt__": (asked,)}
    assert (question.graph, question.node, question.reason) == ("client-refund", "review", "approval")
    assert (question.message, question.value) == ("Refund: 8841", {"request": "8841"})
    assert question.schema["required"] == ["decision"] and question.state == "open"
    with pytest.raises(InvalidResumeError):
        client.inbox.answer(question, {"decision": "perhaps"})
    run_id = client.inbox.answer(question, {"decision": "approved"}, note="a good customer").run_id
    done = client.runs.wait("client-3", run_id, timeout=60)
    assert done.output["log"] == ["read 8841", "review", "closed: approved"]
    answered = client.inbox.get("client-3", question.question_id)
    assert (answered.state, answered.response, answered.note) == (
        "consumed",
        {"decision": "approved"},
        "a good customer",
    )


def test_an_answer_is_for_the_question_that_was_read(client: Client) -> None:
    client.runs.wait("client-4", client.runs.start("client-refund", {"request": "1"}, thread_id="client-4").run_id)
    question = the_question(client, "client-4")
    client.runs.resume("client-4", Answer({"decision": "rejected"}))
    with pytest.raises(GraphdError) as refused:
        client.inbox.answer(question, {"decision": "approved"})
    reason = getattr(refused.value, "server_reason", refused.value.reason)
    assert reason in ("ETAG_MISMATCH", "INTERRUPT_ALREADY_RESOLVED")
    assert client.runs.wait("client-4").output["decision"] == "rejected"
    with pytest.raises(NothingToResumeError):
        client.runs.resume("client-4", {question.question_id: {"decision": "approved"}})


def test_a_dismissed_question_fails_its_node(client: Client) -> None:
    client.runs.wait("client-5", client.runs.start("client-refund", {"request": "1"}, thread_id="client-5").run_id)
    client.inbox.dismiss(the_question(client, "client-5"), "nobody is here")
    with pytest.raises(Exception, match="nobody is here"):
        client.runs.wait("client-5")
    failed = next(client.runs.list("client-5"))
    assert failed.state == "failed" and failed.failure is not None and failed.failure.node == "review"


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


def test_the_inbox_is_watched(client: Client) -> None:
    client.runs.wait("client-10", client.runs.start("client-refund", {"request": "1"}, thread_id="client-10").run_id)
    watch = client.inbox.watch(thread_id="client-10", timeout=60)
    first = next(watch)
    assert first.is_initial and first.question.state == "open"
    client.inbox.answer(first.question, {"decision": "approved"})
    last = next(one for one in watch if one.question.state == "consumed")
    assert not last.is_initial and last.token and last.question.response == {"decision": "approved"}
    client.runs.start("client-refund", {"request": "2"}, thread_id="client-10")
    again = client.inbox.watch(thread_id="client-10", after=last.token, timeout=60)
    assert next(again).question.value == {"request": "2"}, "what was before the token is not shown"
    with pytest.raises(CallTimeoutError, match=r"no answer within 0.2 s"):
        next(client.inbox.watch(thread_id="no-such-thread", timeout=0.2))


def test_open_questions_stop_a_new_input(client: Client) -> None:
    client.runs.wait("client-11", client.runs.start("client-refund", {"request": "1"}, thread_id="client-11").run_id)
    with pytest.raises(OpenQuestionsError) as refused:
        client.runs.start("client-refund", {"request": "2"}, thread_id="client-11")
    assert refused.value.question_ids == (the_question(client, "client-11").question_id,)
    discard = RunOptions(open_questions="discard")
    run = client.runs.start("client-refund", {"request": "2"}, thread_id="client-11", options=discard)
    assert client.runs.wait("client-11", run.run_id).state == "interrupted"
    assert the_question(client, "client-11").value == {"request": "2"}


def test_a_call_may_be_repeated_by_the_program(client: Client) -> None:
    options = RunOptions(request_id="once-1")
    first = client.runs.start("client-count", {"left": 1}, thread_id="client-12", options=options)
    second = client.runs.start("client-count", {"left": 1}, thread_id="client-12", options=options)
    assert first.run_id == second.run_id


def test_breakpoints_are_passed_without_an_answer(client: Client) -> None:
    options = RunOptions(interrupt_before=["step"])
    run = client.runs.start("client-count", {"left": 1}, thread_id="client-13", options=options)
    assert client.runs.wait("client-13", run.run_id).state == "interrupted"
    assert the_question(client, "client-13").reason == "breakpoint"
    client.runs.resume("client-13", None)
    assert client.runs.wait("client-13").output == {"left": 0, "log": [1]}


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


PAIRS = [(Client, AsyncClient), (Runs, AsyncRuns), (Threads, AsyncThreads), (Inbox, AsyncInbox), (Graphs, AsyncGraphs)]


@pytest.mark.parametrize(("kind", "other"), PAIRS)
def test_async_methods_are_the_same(kind: type, other: type) -> None:
    methods = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    assert methods.keys() == {name for name in vars(other) if not name.startswith("_")}
    for name, method in methods.items():
        here, there = inspect.signature(method), inspect.signature(getattr(other, name))
        assert list(here.parameters.values())[1:] == list(there.parameters.values())[1:], name


# Rights.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that knows its callers, and the client of each of them."""
    keys = tmp_path_factory.mktemp("keys") / "keys.yaml"
    roles = {"author": ["author"], "starter": ["starter"], "answerer": ["answerer"], "viewer": ["viewer"]}
    tokens = {name: make_key(keys, name, given) for name, given in roles.items()}
    with dev(flags=["--api-keys", str(keys)], security=Security(token=tokens["author"])) as started:
        clients = {name: Client(started.address, security=Security(token=token)) for name, token in tokens.items()}
        clients["author"].graphs.put(REFUND)
        yield clients


def make_key(keys: Path, name: str, roles: Sequence[str]) -> str:
    given = [argument for role in roles for argument in ("--role", role)]
    command = [*graphd_command(), "keys", "create", "--file", str(keys), "--name", name, *given]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_each_caller_does_what_its_role_permits(guarded: dict[str, Client]) -> None:
    run = guarded["starter"].runs.start("client-refund", {"request": "1"}, thread_id="roles-1")
    assert guarded["viewer"].runs.wait("roles-1", run.run_id).started_by == "starter"
    question = the_question(guarded["answerer"], "roles-1")
    for name, call in (
        ("viewer", lambda c: c.inbox.answer(question, {"decision": "approved"})),
        ("starter", lambda c: c.inbox.answer(question, {"decision": "approved"})),
        ("viewer", lambda c: c.runs.start("client-refund", {"request": "2"}, thread_id="roles-2")),
        ("answerer", lambda c: c.threads.get_state("roles-1")),
        ("answerer", lambda c: c.runs.cancel("roles-1")),
        ("starter", lambda c: c.threads.delete("roles-1")),
        ("starter", lambda c: list(c.runs.stream("client-refund", {}, options=RunOptions(interrupt_before="*")))),
    ):
        with pytest.raises(AccessDeniedError):
            call(guarded[name])
    guarded["answerer"].inbox.answer(question, {"decision": "approved"})
    assert guarded["starter"].runs.wait("roles-1").output["decision"] == "approved"
    assert guarded["viewer"].inbox.get("roles-1", question.question_id).responder == "answerer"


# Restarts.


def restart(server: DevServer, store: str) -> DevServer:
    server.process.kill()
    server.process.wait()
    return dev(store=store, port=server.port)


def test_a_stream_goes_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = Client(server.address)
        client.graphs.put(COUNT)
        stream = client.runs.stream("client-count", {"left": 400}, thread_id="restart-1")
        seen = [next(stream).data["step"]["log"][0]]
        server = restart(server, store)
        seen += [item.data["step"]["log"][0] for item in stream]
        assert seen == list(range(400, 0, -1))
        assert stream.run is not None and stream.run.state == "succeeded"
    finally:
        server.close()


async def test_an_async_stream_and_a_watch_go_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = AsyncClient(server.address)
        await client.graphs.put(COUNT)
        await client.graphs.put(REFUND)
        watch = client.inbox.watch(timeout=120)
        await client.runs.start("client-refund", {"request": "1"}, thread_id="restart-2")
        asked = await anext(watch)
        stream = client.runs.stream("client-count", {"left": 400}, thread_id="restart-3")
        seen = [(await anext(stream)).data["step"]["log"][0]]
        server = restart(server, store)
        seen += [item.data["step"]["log"][0] async for item in stream]
        assert seen == list(range(400, 0, -1))
        await client.inbox.answer(asked.question, {"decision": "approved"})
        assert (await anext(watch)).question.state in ("answered", "consumed")
        await watch.aclose()
    finally:
        server.close()


def test_a_wait_goes_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = Client(server.address)
        client.graphs.put(REFUND)
        client.runs.wait(
            "restart-4", client.runs.start("client-refund", {"request": "1"}, thread_id="restart-4").run_id
        )
        question = the_question(client, "restart-4")
        server = restart(server, store)
        run = client.inbox.answer(question, {"decision": "approved"})
        assert client.runs.wait("restart-4", run.run_id).output["decision"] == "approved"
    finally:
        server.close()


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
