"""Clients and workers of servers that know their callers by API keys, with roles."""

from __future__ import annotations

import base64
import datetime
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import pytest

from graphd import START, Command, InMemorySaver, Security, StateGraph, interrupt
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.dev import DevServer, dev, graphd_command
from graphd.errors import (
    AccessDeniedError,
    OmittedValue,
    UnauthenticatedError,
)
from graphd.remote import AsyncClient, Client
from graphd.runtime import Runtime
from graphd.transport.server import call_unary, server_at
from tests.secured import build, list_workers, server_flags, use_everything
from tests.test_worker import State, config

ROLES = ("viewer", "answerer", "starter", "worker", "author", "operator")


def make_key(keys: Path, name: str, roles: Sequence[str] = ROLES) -> str:
    given = [argument for role in roles for argument in ("--role", role)]
    command = [*graphd_command(), "keys", "create", "--file", str(keys), "--name", name, *given]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The callers that the next server knows."""
    return tmp_path_factory.mktemp("keys") / "keys.yaml"


@pytest.fixture(scope="module")
def ann(keys: Path) -> str:
    """The token of a caller."""
    return make_key(keys, "ann")


@pytest.fixture(scope="module")
def bob(keys: Path) -> str:
    """The token of a caller who answers, and does nothing else."""
    return make_key(keys, "bob", ["answerer"])


@pytest.fixture(scope="module")
def carl(keys: Path) -> str:
    """The token of a caller who starts runs, and does nothing else."""
    return make_key(keys, "carl", ["starter"])


@pytest.fixture(scope="module")
def dora(keys: Path) -> str:
    """The token of a program that works, starts and answers, and may drop no questions."""
    return make_key(keys, "dora", ["worker", "author", "starter", "answerer"])


@pytest.fixture(scope="module")
def erin(keys: Path) -> str:
    """The token of a program that works and answers, and may not replace settings."""
    return make_key(keys, "erin", ["worker", "author", "answerer"])


@pytest.fixture(scope="module")
def knowing(certs: Path, keys: Path, ann: str, bob: str, carl: str, dora: str, erin: str) -> Iterator[DevServer]:
    """A server with TLS that knows its callers."""
    ours = Security(ca=certs / "ca.pem", token=ann)
    links = keys.with_name("link-keys")
    links.write_text("k1: " + base64.b64encode(b"k" * 32).decode() + "\n")
    links.chmod(0o400)
    link_flags = ["--link-keys", str(links), "--links-url", "https://answer.example"]
    with dev(flags=[*server_flags(certs), "--api-keys", str(keys), *link_flags], security=ours) as started:
        yield started


async def test_clients_and_workers_are_known_by_their_api_key(knowing: DevServer) -> None:
    await use_everything(knowing, knowing.address, knowing.security, "api-key")


def test_an_answer_is_of_the_caller_of_the_key(knowing: DevServer) -> None:
    saver = InMemorySaver(server=knowing.address, security=knowing.security)
    graph = build(lambda state: {"log": [interrupt("go?")]}).compile(saver, name="responder")
    (question,) = graph.invoke({"log": []}, config("responder-1"))["__interrupt__"]
    graph.invoke(Command(resume="yes"), config("responder-1"))
    request = ins.GetInterruptRequest(thread_id="responder-1", interrupt_id=question.id)
    stubs = server_at(knowing.address, saver.security).stubs
    answered = call_unary(stubs.interrupts.GetInterrupt, request)
    assert (answered.responder, answered.responder_how) == ("ann", "api key")
    assert answered.response_method == "graphd.v1.GraphService/Resume"
    assert answered.HasField("response_time")
    runs = call_unary(stubs.graphs.ListRuns, gs.ListRunsRequest(thread_id="responder-1")).runs
    assert [run.started_by for run in runs] == ["ann"]
    graph.detach()


async def test_links_are_made(knowing: DevServer) -> None:
    saver = InMemorySaver(server=knowing.address, security=knowing.security)
    graph = build(lambda state: {"log": [interrupt("go?")]}).compile(saver, name="linked")
    graph.invoke({"log": []}, config("linked-1"))
    client = Client(knowing.address, security=knowing.security)
    (question,) = list(client.inbox.list(thread_id="linked-1"))
    link = client.inbox.make_link(question, valid=60, bound=True)
    assert link.url == "https://answer.example" + link.path and link.path.startswith("/a/")
    assert link.path not in repr(link)
    assert link.expires_at is not None
    assert link.expires_at - datetime.datetime.now(datetime.UTC) <= datetime.timedelta(seconds=60)
    with pytest.raises(AccessDeniedError, match="link-others"):
        client.inbox.make_link(question, "bob", ["finance"])
    other = await AsyncClient(knowing.address, security=knowing.security).inbox.make_link(question)
    assert other.url.startswith("https://answer.example/a/")
    graph.detach()


class Context(TypedDict):
    who: str


def ask_twice() -> StateGraph:
    def ask(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        return {"log": [interrupt("go?"), interrupt({"sure": True}), runtime.context["who"]]}

    def tell(state: State) -> dict[str, Any]:
        return {"log": ["done"]}

    return StateGraph(State, Context).add_sequence([("ask", ask), ("tell", tell)]).add_edge(START, "ask")


@pytest.fixture
def answering(knowing: DevServer, certs: Path, bob: str, carl: str) -> Iterator[tuple[Any, Any]]:
    """A graph as a client has it who answers, and as one who starts; another process works for it."""
    works = ask_twice().compile(server=knowing.address, security=knowing.security, name="answering")
    clients = [
        ask_twice().compile(
            server=knowing.address, security=Security(ca=certs / "ca.pem", token=token), worker=False, name="answering"
        )
        for token in (bob, carl)
    ]
    yield clients[0], clients[1]
    works.detach()


async def test_a_caller_who_only_answers_answers(knowing: DevServer, answering: tuple[Any, Any]) -> None:
    answers, starts = answering
    with pytest.raises(AccessDeniedError, match="steer-run"):
        starts.invoke({"log": []}, config("answering-1"), context={"who": "carl"}, interrupt_before=["tell"])
    steers = ask_twice().compile(server=knowing.address, security=knowing.security, worker=False, name="answering")
    start = {**config("answering-1"), "recursion_limit": 9}
    (first,) = steers.invoke({"log": []}, start, context={"who": "carl"}, interrupt_before=["tell"])["__interrupt__"]
    with pytest.raises(AccessDeniedError, match="replace-settings"):
        answers.invoke(Command(resume="yes"), config("answering-1"), interrupt_before=[])
    with pytest.warns(OmittedValue, match="may not read states"):
        (second,) = answers.invoke(Command(resume="yes"), config("answering-1"))["__interrupt__"]
    assert second.value == {"sure": True}
    with pytest.warns(OmittedValue, match="may not read states"):
        await answers.ainvoke(Command(resume={second.id: "surely"}), config("answering-1"))
    assert starts.get_state(config("answering-1")).values["log"] == ["yes", "surely", "carl"], "and the context is kept"
    assert starts.get_state(config("answering-1")).next == ("tell",), "and the breakpoint"
    with pytest.raises(AccessDeniedError, match="right"):
        starts.invoke(Command(update={"log": ["written"]}), config("answering-1"))
    stubs = server_at(knowing.address, knowing.security).stubs
    for question in (first, second):
        request = ins.GetInterruptRequest(thread_id="answering-1", interrupt_id=question.id)
        assert call_unary(stubs.interrupts.GetInterrupt, request).responder == "bob"


def test_a_caller_who_only_starts_drops_no_questions(answering: tuple[Any, Any]) -> None:
    _, starts = answering
    (question,) = starts.invoke({"log": []}, config("kept"), context={"who": "carl"})["__interrupt__"]
    with pytest.raises(AccessDeniedError, match="discard-questions"):
        starts.invoke({"log": []}, config("kept"), context={"who": "carl"})
    assert starts.get_state(config("kept")).interrupts == (question,)


def test_a_program_goes_without_rights_that_its_caller_has_not(
    knowing: DevServer, certs: Path, dora: str, erin: str
) -> None:
    securities = [Security(ca=certs / "ca.pem", token=token) for token in (dora, erin)]
    both, answers = (
        ask_twice().compile(server=knowing.address, security=security, name="less") for security in securities
    )
    missing = [graph.connect().server.missing_rights for graph in (both, answers)]
    (first,) = both.invoke({"log": []}, config("less"), context={"who": "dora"})["__interrupt__"]
    assert missing[0] == {"discard-questions"}
    with pytest.raises(AccessDeniedError, match="discard-questions"):
        both.invoke({"log": []}, config("less"), context={"who": "dora"})
    assert both.get_state(config("less")).interrupts == (first,)

    with pytest.raises(AccessDeniedError, match="replace-settings"):
        answers.invoke(Command(resume="yes"), config("less"), context={"who": "erin"})
    with pytest.warns(OmittedValue):
        answers.invoke(Command(resume="yes"), config("less"))
    assert missing[1] == {"replace-settings"}
    output = both.invoke(Command(resume="surely"), config("less"), context={"who": "dora"})
    assert output["log"] == ["yes", "surely", "dora", "done"]
    for graph in (both, answers):
        graph.detach()


@pytest.mark.parametrize("mode", ["updates", "values", "messages", "tasks", "debug"])
def test_a_caller_who_only_answers_sees_what_follows(answering: tuple[Any, Any], mode: str) -> None:
    answers, starts = answering
    thread = config(f"answering-{mode}")
    starts.invoke({"log": []}, thread, context={"who": "carl"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmittedValue)
        asked = list(answers.stream(Command(resume="yes"), thread, stream_mode=mode))
    assert mode == "messages" or "sure" in str(asked)
    told = list(answers.stream(Command(resume="surely"), thread, stream_mode=mode))
    assert mode == "messages" or "done" in str(told)
    assert starts.get_state(thread).values["log"] == ["yes", "surely", "carl", "done"]


def test_a_caller_who_only_answers_gets_the_output(answering: tuple[Any, Any]) -> None:
    answers, starts = answering
    starts.invoke({"log": []}, config("answering-large"), context={"who": "carl"})
    with pytest.warns(OmittedValue):
        answers.invoke(Command(resume="yes"), config("answering-large"))
    large = "x" * 2000
    output = answers.invoke(Command(resume=large), config("answering-large"))
    assert output == {"log": ["yes", large, "carl", "done"]}


def test_a_client_that_is_no_worker_does_not_serve(knowing: DevServer, answering: tuple[Any, Any]) -> None:
    for client in answering:
        with pytest.raises(RuntimeError, match="worker=False"):
            client.serve()
    workers = list_workers(knowing.address, knowing.security).workers
    assert [w for w in workers if "answering" in str(w)], "the one that works"
    assert len([w for w in workers if "answering" in str(w)]) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda token: "", "NO_CREDENTIALS"),
        (lambda token: token[:-6] + "AAAAAA", "TOKEN_UNKNOWN"),
        (lambda token: "hush", "TOKEN_ISSUER"),
    ],
)
def test_another_key_is_refused(
    knowing: DevServer,
    certs: Path,
    ann: str,
    change: Callable[[str], str],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = Security(ca=certs / "ca.pem", token=change(ann))
    with pytest.raises(UnauthenticatedError) as refused:
        build().compile(server=knowing.address, security=wrong, name="another-key")
    assert refused.value.reason == reason
    with pytest.raises(UnauthenticatedError) as refused:
        list_workers(knowing.address, wrong)
    assert refused.value.reason == reason
    if token := change(ann):
        assert token not in str(refused.value) + caplog.text
