"""Questions that certain people answer, and several."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest

from graphd import (
    START,
    AsyncClient,
    Client,
    Command,
    Escalate,
    InMemorySaver,
    People,
    Remind,
    Security,
    StateGraph,
    interrupt,
)
from graphd.dev import dev
from graphd.errors import AccessDeniedError, GraphdError, InvalidUpdateError
from tests.test_client_inbox import make_key


class State(TypedDict, total=False):
    order: int
    decision: str


TWO = People(groups=["finance"], approvals=2, agree="answer != 'no'", not_requester=True)


def review(state: State) -> State:
    return {"decision": interrupt({"order": state["order"]}, people=TWO)}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """A client of each person, of a server whose graph "refund" asks two of finance; eva starts its runs."""
    keys = tmp_path_factory.mktemp("keys") / "keys.yaml"
    groups = {"eva": ["finance"], "ana": ["finance"], "ben": ["finance", "staff"], "carl": ["staff"]}
    tokens = {name: make_key(keys, name, ["admin"], of) for name, of in groups.items()}
    security = Security(token=tokens["eva"])
    with dev(flags=["--api-keys", str(keys)], security=security) as server:
        saver = InMemorySaver(server=server.address, security=security)
        graph = StateGraph(State).add_node("review", review).add_edge(START, "review").compile(saver, name="refund")
        graph.attach()
        yield {name: Client(server.address, security=Security(token=token)) for name, token in tokens.items()}
        graph.detach()


def ask(people: dict[str, Client], thread: str) -> Any:
    run = people["eva"].runs.start("refund", {"order": 7}, thread_id=thread)
    assert people["eva"].runs.wait(thread, run.run_id).state == "interrupted"
    return next(q for q in people["eva"].inbox.list() if q.thread_id == thread)


def test_two_of_a_group_decide(people: dict[str, Client]) -> None:
    question = ask(people, "two")
    assert question.people == People(
        groups=("finance",), approvals=2, agree="answer != 'no'", not_requester=True, requester="eva"
    )
    for name, rule in (("eva", "not_requester"), ("carl", "group")):
        with pytest.raises(AccessDeniedError) as refused:
            people[name].inbox.answer(question, "yes")
        assert refused.value.metadata["rule"] == rule
    people["ana"].inbox.answer(question, "yes")
    question = people["ana"].inbox.get("two", question.question_id)
    assert question.state == "open"
    assert {"answer", "claim", "retract"} <= question.allowed
    assert not {"answer", "claim", "retract"} & people["eva"].inbox.get("two", question.question_id).allowed
    assert [(v.principal, v.value, v.agrees) for v in question.votes] == [("ana", "yes", True)]
    people["ben"].inbox.answer(question, "yes")
    assert people["eva"].runs.wait("two").output == {"order": 7, "decision": "yes"}


def test_a_veto_decides(people: dict[str, Client]) -> None:
    question = ask(people, "veto")
    people["ana"].inbox.answer(question, "yes")
    people["ben"].inbox.answer(question, "no")
    assert people["eva"].runs.wait("veto").output == {"order": 7, "decision": "no"}


def test_a_server_that_knows_nobody_refuses_the_question() -> None:
    graph = StateGraph(State).add_node("review", review).add_edge(START, "review").compile(InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="does not know who calls"):
        graph.invoke({"order": 7}, {"configurable": {"thread_id": "unknown"}})


def test_an_answer_to_everybody_needs_no_callers() -> None:
    def anybody(state: State) -> State:
        return {"decision": interrupt("ok?", people=People(agree="answer == 'yes'"))}

    graph = StateGraph(State).add_node("anybody", anybody).add_edge(START, "anybody").compile(InMemorySaver())
    config: Any = {"configurable": {"thread_id": "anybody"}}
    graph.invoke({"order": 7}, config)
    assert graph.invoke(Command(resume="yes"), config) == {"order": 7, "decision": "yes"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"users": "ana"}, TypeError),
        ({"groups": "finance"}, TypeError),
        ({"users": []}, ValueError),
        ({"users": (), "groups": []}, ValueError),
        ({"approvals": 0}, ValueError),
        ({"vetoes": True}, ValueError),
        ({"approvals": "2"}, ValueError),
    ],
)
def test_a_policy_that_is_none_is_refused_at_once(given: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(given))):
        People(**given)


def test_a_claim_is_seen_and_ends(people: dict[str, Client]) -> None:
    question = ask(people, "claimed")
    claimed = people["ana"].inbox.claim(question, 3600)
    assert claimed.claimed_by == "ana" and claimed.claim_expires_at is not None
    with pytest.raises(GraphdError) as refused:
        people["ben"].inbox.claim(question)
    assert refused.value.reason == "INTERRUPT_CLAIMED" and refused.value.metadata["claimedBy"] == "ana"
    assert people["ana"].inbox.release(question, "on leave").claimed_by == ""
    assert people["ben"].inbox.claim(question).claimed_by == "ben"


def test_what_happened_is_told(people: dict[str, Client]) -> None:
    question = ask(people, "told")
    comment = people["ben"].inbox.comment(question, "is it the right order?")
    assert (comment.number, comment.kind, comment.principal) == (2, "commented", "ben")
    people["ana"].inbox.answer(question, "yes", note="a good customer")  # as it was read before the comment
    people["ben"].inbox.answer(question, "yes")
    assert people["eva"].runs.wait("told").state == "succeeded"
    trail = list(people["carl"].inbox.trail(question))
    assert [(e.kind, e.principal, e.value, e.note) for e in trail] == [
        ("asked", "", None, ""),
        ("commented", "ben", None, "is it the right order?"),
        ("voted", "ana", "yes", "a good customer"),
        ("voted", "ben", "yes", ""),
        ("answered", "ben", "yes", ""),
        ("used", "", None, ""),
    ]
    for before, after in itertools.pairwise(trail):
        assert hashlib.sha256(before.record.encode()).hexdigest() == before.digest
        assert json.loads(after.record)["previous"] == before.digest


async def test_async_programs_discuss_questions(people: dict[str, Client]) -> None:
    question = ask(people, "async")
    target = people["ana"].inbox._caller.server.target
    client = AsyncClient(target.address, security=target.security)
    assert (await client.inbox.claim(question)).claimed_by == "ana"
    assert (await client.inbox.release(question)).claimed_by == ""
    assert (await client.inbox.comment(question, "hm")).kind == "commented"
    assert [e.kind async for e in client.inbox.trail(question)] == ["asked", "claimed", "released", "commented"]


def test_many_questions_get_one_answer(people: dict[str, Client]) -> None:
    questions = [ask(people, f"many-{n}") for n in range(5)]
    people["ana"].inbox.answer(questions[0], "no")
    with pytest.raises(ValueError, match="0 questions"):
        people["ana"].inbox.answer_many([], "yes")
    outcomes = people["ana"].inbox.answer_many(questions, "yes", note="all of them")
    assert {o.thread_id: o.reason for o in outcomes if not o.stored} == {"many-0": "INTERRUPT_ALREADY_RESOLVED"}
    assert [v.note for v in people["ana"].inbox.get("many-3", questions[3].question_id).votes] == ["all of them"]


async def test_async_programs_answer_many(people: dict[str, Client]) -> None:
    questions = [ask(people, f"amany-{n}") for n in range(3)]
    target = people["ben"].inbox._caller.server.target
    outcomes = await AsyncClient(target.address, security=target.security).inbox.answer_many(questions, "yes")
    assert sorted((o.thread_id, o.stored) for o in outcomes) == [(f"amany-{n}", True) for n in range(3)]


def test_steps_are_taken_while_nobody_decides(people: dict[str, Client]) -> None:
    def hurried(state: State) -> State:
        return {
            "decision": interrupt(
                "now?",
                people=People(groups=["finance"]),
                priority="high",
                steps=[Remind(after=0.05), Escalate(after=0.1, groups=["staff"], priority="urgent")],
                ttl=60,
                on_expiry="resume_default",
                default="too late",
            )
        }

    target = people["eva"].inbox._caller.server.target
    saver = InMemorySaver(server=target.address, security=target.security)
    graph = StateGraph(State).add_node("review", hurried).add_edge(START, "review").compile(saver, name="hurried")
    graph.attach()
    try:
        run = people["eva"].runs.start("hurried", {"order": 7}, thread_id="hurried")
        people["eva"].runs.wait("hurried", run.run_id)
        question = next(iter(people["eva"].inbox.list(thread_id="hurried")))
        assert question.due_at is not None
        while question.priority != "urgent":
            time.sleep(0.05)
            question = people["eva"].inbox.get("hurried", question.question_id)
        assert question.people is not None and list(question.people.groups or ()) == ["finance", "staff"]
        kinds = [(e.kind, e.groups, e.priority) for e in people["eva"].inbox.trail(question)]
        assert kinds == [("asked", (), ""), ("reminded", (), ""), ("escalated", ("staff",), "urgent")]
        people["carl"].inbox.answer(question, "yes")
        assert people["eva"].runs.wait("hurried").output == {"order": 7, "decision": "yes"}
    finally:
        graph.detach()


def test_steps_that_are_none_are_refused() -> None:
    with pytest.raises(TypeError, match="want a list of names"):
        Remind(after=1, users="ana")
    with pytest.raises(ValueError, match="priority is 'soon'"):
        Escalate(after=1, priority="soon")  # type: ignore[arg-type]


def test_an_answer_is_checked(people: dict[str, Client]) -> None:
    question = ask(people, "checked")
    first = people["ana"].inbox.check(question, "yes")
    assert (first.decides, first.repeated, first.missing_votes, first.undo.total_seconds()) == (False, False, 1, 0)
    people["ana"].inbox.answer(question, "yes")
    assert people["ana"].inbox.check(question, "yes").repeated
    assert people["ben"].inbox.check(question, "yes").decides
    with pytest.raises(AccessDeniedError):
        people["carl"].inbox.check(question, "yes")
    assert len(people["ana"].inbox.get("checked", question.question_id).votes) == 1


def test_an_answer_is_taken_back(people: dict[str, Client]) -> None:
    def confirm(state: State) -> State:
        return {"decision": interrupt("delete?", undo=3600 if state["order"] == 1 else 0.5)}

    target = people["eva"].inbox._caller.server.target
    saver = InMemorySaver(server=target.address, security=target.security)
    graph = StateGraph(State).add_node("confirm", confirm).add_edge(START, "confirm").compile(saver, name="undone")
    graph.attach()
    try:
        for order in (1, 2):
            run = people["eva"].runs.start("undone", {"order": order}, thread_id=f"undone-{order}")
            people["eva"].runs.wait(f"undone-{order}", run.run_id)
        question = next(iter(people["ana"].inbox.list(thread_id="undone-1")))
        assert question.undo.total_seconds() == 3600 and question.effective_at is None
        people["ana"].inbox.answer(question, "yes")
        answered = people["ana"].inbox.get("undone-1", question.question_id)
        assert answered.state == "answered" and answered.effective_at is not None
        with pytest.raises(AccessDeniedError, match="only who has answered"):
            people["ben"].inbox.retract(question)
        assert people["ana"].inbox.retract(question, note="a slip").state == "open"
        assert [e.kind for e in people["ana"].inbox.trail(question)] == ["asked", "answered", "retracted"]

        quick = next(iter(people["ana"].inbox.list(thread_id="undone-2")))
        people["ana"].inbox.answer(quick, "yes")
        assert people["eva"].runs.wait("undone-2").output == {"order": 2, "decision": "yes"}
        with pytest.raises(GraphdError) as refused:
            people["ana"].inbox.retract(quick)
        assert refused.value.reason == "RESPONSE_IN_EFFECT"
    finally:
        graph.detach()


def test_a_delegate_answers(people: dict[str, Client]) -> None:
    policy = People(users=["ana"], delegable=True, not_contributor=True)

    def ask_ana(state: State) -> State:
        return {"decision": interrupt("ok?", people=policy)}

    target = people["eva"].inbox._caller.server.target
    saver = InMemorySaver(server=target.address, security=target.security)
    graph = StateGraph(State).add_node("review", ask_ana).add_edge(START, "review").compile(saver, name="delegated")
    graph.attach()
    try:
        run = people["eva"].runs.start("delegated", {"order": 1}, thread_id="delegated")
        people["eva"].runs.wait("delegated", run.run_id)
        question = next(iter(people["ana"].inbox.list(thread_id="delegated")))
        assert question.people is not None and question.people.delegable and question.people.not_contributor
        handed = people["ana"].inbox.delegate(question, "carl", note="on leave")
        assert handed.delegates == {"ana": "carl"} and handed.assignees == ("carl",)
        assert [q.question_id for q in people["carl"].inbox.list(mine=True, graph="delegated")] == [
            question.question_id
        ]
        with pytest.raises(AccessDeniedError, match="answers in the place of"):
            people["ana"].inbox.answer(question, "yes")
        people["carl"].inbox.answer(question, "yes")
        assert people["eva"].runs.wait("delegated").output == {"order": 1, "decision": "yes"}
        kinds = [(e.kind, e.principal) for e in people["ana"].inbox.trail(question)]
        assert ("delegated", "ana") in kinds and ("voted", "carl") in kinds
    finally:
        graph.detach()
