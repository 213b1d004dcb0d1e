"""Questions, answers and rights, as a client without a graph sees them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphd import Client, Security
from graphd.dev import dev, graphd_command
from graphd.errors import (
    AccessDeniedError,
    CallTimeoutError,
    GraphdError,
    InvalidResumeError,
    NothingToResumeError,
    OpenQuestionsError,
)
from graphd.remote import Answer, RunOptions
from graphd.types import Interrupt
from tests.graph_documents import REFUND, the_question


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


def test_breakpoints_are_passed_without_an_answer(client: Client) -> None:
    options = RunOptions(interrupt_before=["step"])
    run = client.runs.start("client-count", {"left": 1}, thread_id="client-13", options=options)
    assert client.runs.wait("client-13", run.run_id).state == "interrupted"
    assert the_question(client, "client-13").reason == "breakpoint"
    client.runs.resume("client-13", None)
    assert client.runs.wait("client-13").output == {"left": 0, "log": [1]}


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


def make_key(keys: Path, name: str, roles: Sequence[str], groups: Sequence[str] = ()) -> str:
    given = [argument for role in roles for argument in ("--role", role)]
    given += [argument for group in groups for argument in ("--group", group)]
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
