"""Questions and answers with parts that not everybody sees."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from graphd import START, AsyncClient, Client, InMemorySaver, People, Security, StateGraph, interrupt
from graphd.dev import DevServer, dev
from graphd.errors import AccessDeniedError, InvalidUpdateError, NonDeterministicNode, RemoteNodeError
from graphd.runtime.ask import question_of
from graphd.runtime.replay import Answer, Place, Question, Replay
from graphd.runtime.secret import check_secret, hide_parts
from graphd.types import Command
from tests.test_client_inbox import make_key

ASKED, ANSWERED = "asked-4111", "answer-7777"
given: list[Any] = []


class State(TypedDict, total=False):
    order: int
    paid: bool


def pay(state: State) -> State:
    answer = interrupt(
        {"card": {"number": ASKED}, "order": state["order"]},
        secret=["/card"],
        people=People(users=["ana", "ben"], reveal_users=["ana"]),
        response_schema={"type": "object", "properties": {"card": {"type": "string", "maxLength": 20}}},
    )
    given.append(answer)
    return {"paid": True}


@dataclass
class Setup:
    clients: dict[str, Client]
    server: DevServer
    tokens: dict[str, str]
    file: pathlib.Path


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """A server with an encrypted file, whose graph "pay" asks for a card."""
    folder = tmp_path_factory.mktemp("secret")
    keys, sealing, file = folder / "keys.yaml", folder / "sealing", folder / "graphd.db"
    sealing.write_text(f"k1: {base64.b64encode(os.urandom(32)).decode()}\n")
    sealing.chmod(0o600)
    tokens = {name: make_key(keys, name, ["admin"], []) for name in ("eva", "ana", "ben")}
    security = Security(token=tokens["eva"])
    flags = ["--api-keys", str(keys), "--encryption-keys", str(sealing), "--log-level", "debug"]
    with dev(store=f"sqlite:{file}", flags=flags, security=security) as server:
        saver = InMemorySaver(server=server.address, security=security)
        graph = StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile(saver, name="pay")
        graph.attach()
        clients = {name: Client(server.address, security=Security(token=token)) for name, token in tokens.items()}
        yield Setup(clients, server, tokens, file)
        graph.detach()


def ask(setup: Setup, thread: str) -> Any:
    run = setup.clients["eva"].runs.start("pay", {"order": 7}, thread_id=thread)
    assert setup.clients["eva"].runs.wait(thread, run.run_id).state == "interrupted"
    return next(q for q in setup.clients["eva"].inbox.list(thread_id=thread))


def test_the_node_gets_what_is_shown_nowhere(setup: Setup) -> None:
    question = ask(setup, "whole")
    assert question.secret == ("/card",)
    assert question.value == {"card": {"__redacted__": True}, "order": 7}
    given.clear()
    setup.clients["ben"].inbox.answer(question, {"card": ANSWERED})
    assert setup.clients["eva"].runs.wait("whole").output == {"order": 7, "paid": True}
    assert given == [{"card": ANSWERED}]
    admin = setup.clients["eva"]
    after = admin.inbox.get("whole", question.question_id)
    assert after.response == {"card": {"__redacted__": True}}
    shown = [
        repr(after),
        repr(list(admin.inbox.trail(after))),
        repr(admin.threads.get_state("whole")),
        setup.server.log(),
    ]
    shown.append(repr(list(admin.threads.get_history("whole"))))
    for secret in (ASKED, ANSWERED):
        assert all(secret not in text for text in shown)
        for stored in setup.file.parent.iterdir():
            assert secret.encode() not in stored.read_bytes(), stored


def test_reveal_shows_it_and_tells_who_has_seen_it(setup: Setup) -> None:
    question = ask(setup, "reveal")
    with pytest.raises(AccessDeniedError) as refused:
        setup.clients["ben"].inbox.reveal(question)
    assert refused.value.metadata["rule"] == "reveal"
    revealed = setup.clients["ana"].inbox.reveal(question, note="to compare")
    assert revealed.value == {"card": {"number": ASKED}, "order": 7}
    assert ASKED not in repr(revealed)
    trail = list(setup.clients["ana"].inbox.trail(question))
    assert [(e.kind, e.principal, e.note, e.fields) for e in trail[1:]] == [
        ("revealed", "ana", "to compare", ("/card",))
    ]
    assert trail[-1] == revealed.entry

    async def reveal_again() -> Any:
        return await AsyncClient(setup.server.address, security=Security(token=setup.tokens["ana"])).inbox.reveal(
            question
        )

    assert asyncio.run(reveal_again()).value == revealed.value


def test_a_server_without_keys_refuses_the_question(tmp_path: pathlib.Path) -> None:
    def plain(state: State) -> State:
        return {"paid": interrupt({"card": ASKED}, secret=["/card"])}

    with dev(store=f"sqlite:{tmp_path / 'plain.db'}") as server:
        builder = StateGraph(State).add_node("plain", plain).add_edge(START, "plain")
        graph = builder.compile(InMemorySaver(server=server.address), name="plain")
        with pytest.raises(InvalidUpdateError, match=r"secret: .*--encryption-keys"):
            graph.invoke({"order": 7}, {"configurable": {"thread_id": "plain"}})


def test_another_secret_gets_no_answer() -> None:
    cards = iter(["one-1", "two-2", "two-2"])

    def changing(state: State) -> State:
        return {"paid": interrupt({"card": next(cards)}, secret=["/card"], drift="fail")}

    graph = StateGraph(State).add_node("changing", changing).add_edge(START, "changing").compile(InMemorySaver())
    config: Any = {"configurable": {"thread_id": "changing"}}
    shown = graph.invoke({"order": 7}, config)["__interrupt__"][0].value
    assert shown == {"card": {"__redacted__": True}}
    with pytest.raises(NonDeterministicNode, match=r"/card \(secret\)") as failed:
        graph.invoke(Command(resume=True), config)
    assert "two-2" not in str(failed.value)
    assert "one-1" not in str(failed.value)


def test_a_refused_answer_is_asked_anew_without_showing_it() -> None:
    pydantic = pytest.importorskip("pydantic")

    def even(value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value

    model = pydantic.create_model(
        "Code", code=(int, ...), __validators__={"even": pydantic.field_validator("code")(even)}
    )

    def enter(state: State) -> State:
        interrupt("the code", response_schema=model, secret=["/code"])
        return {"paid": True}

    graph = StateGraph(State).add_node("enter", enter).add_edge(START, "enter").compile(InMemorySaver())
    config: Any = {"configurable": {"thread_id": "enter"}}
    graph.invoke({"order": 7}, config)
    with pytest.raises(pydantic.ValidationError):
        graph.invoke(Command(resume={"code": 77777771}), config)
    assert "77777771" not in json.dumps([repr(t) for t in graph.get_state(config).tasks])
    assert graph.invoke(Command(resume={"code": 2}), config) == {"order": 7, "paid": True}


def test_a_node_that_fails_after_a_refused_answer_does_not_show_it() -> None:
    pydantic = pytest.importorskip("pydantic")

    def refuse(value: int) -> int:
        raise ValueError(f"{value} is odd")

    validators = {"refuse": pydantic.field_validator("code")(refuse)}
    model = pydantic.create_model("Code", code=(int, ...), __validators__=validators)

    def enter(state: State) -> State:
        interrupt("the code", response_schema=model, secret=["/code"])
        return {"paid": True}

    with dev() as server:
        graph = StateGraph(State).add_node("enter", enter).add_edge(START, "enter")
        compiled = graph.compile(InMemorySaver(server=server.address), name="refused")
        compiled.attach()
        client = Client(server.address)
        run = client.runs.start("refused", {"order": 7}, thread_id="refused")
        client.runs.wait("refused", run.run_id)
        client.inbox.answer(next(iter(client.inbox.list(thread_id="refused"))), {"code": 77777771})
        client.runs.wait("refused", run.run_id)
        client.inbox.dismiss(next(iter(client.inbox.list(thread_id="refused"))), "no code")
        with pytest.raises(RemoteNodeError, match="no code"):
            client.runs.wait("refused", run.run_id)
        failure = client.runs.get("refused", run.run_id).failure
        compiled.detach()
    assert failure is not None
    assert "InterruptDismissed" in failure.stack
    assert "77777771" not in failure.stack


@pytest.mark.parametrize(
    ("pointers", "message"),
    [
        ("/card", "must be a list"),
        (["card"], "JSON pointers"),
        (["/a~2"], "JSON pointers"),
        (["/a", "/a/b"], "overlap"),
        (["", "/a"], "overlap"),
        (["/a", "/a"], "overlap"),
        ([f"/{n}" for n in range(17)], "at most 16"),
        (["/" + "x" * 256], "at most 256"),
    ],
)
def test_pointers_that_are_none_are_refused(pointers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_secret(pointers)


def test_what_is_hidden() -> None:
    mark = {"__redacted__": True}
    assert check_secret(["", *()]) == ("",)
    assert hide_parts({"a": [1, {"b": 2}], "c": 3}, ["/a/1/b", "/c", "/d", "/a/01"]) == (
        {"a": [1, {"b": mark}], "c": mark},
        True,
    )
    assert hide_parts("x", [""]) == (mark, True)
    assert hide_parts({"a": 1}, ["/a/b", "/b"]) == ({"a": 1}, False)


def test_what_a_node_raises_shows_no_secret() -> None:
    value = {"card": ASKED, "at": [1]}
    question = Question(Place("", "", 0), value, {"secret": ("/card",)})
    assert question_of(question).value == {"card": {"__redacted__": True}, "at": [1]}
    assert value == {"card": ASKED, "at": [1]}
    assert question_of(Question(Place("", "", 0), value)).value is value


def test_a_replay_names_the_digest_of_the_secrets() -> None:
    here = Place("", "", 0)
    question = Question(here, {"card": "1"}, {"secret": ("/card",)})
    whole = question.compute_secret_digest("q1", ())
    answer = Answer("yes", seen=question.compute_digest(()), question_id="q1", secret_seen=whole)
    replay = Replay({here: answer}, {})
    assert replay.ask_question("", "", {"card": "1"}, {"secret": ("/card",)}) is answer
    assert [(used.secret_seen, used.asked) for used in replay.used] == [(whole, None)]
    other = Replay({here: answer}, {}).ask_question("", "", {"card": "2"}, {"secret": ("/card",)})
    assert isinstance(other, Question)
