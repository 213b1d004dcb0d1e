"""Questions of graphs to people, and answers to them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphd import codec
from graphd._gen.v1 import interrupt_pb2, run_pb2
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.names import public_levels, public_name, public_thread
from graphd.remote.fields import read_time, read_value, read_word
from graphd.remote.trail import TrailEntry, read_entry
from graphd.values.people import People


@dataclass(frozen=True)
class Question:
    """A question of a node, with its answer once there is one.

    A breakpoint is a question with the reason "breakpoint" that takes no answer.
    """

    question_id: str
    thread_id: str
    run_id: str
    graph: str
    node: str
    namespace: tuple[str, ...]
    """Where the node is: levels "node:task" from the outside in; empty for the graph itself."""
    value: Any
    """What the node asks, as plain JSON."""
    message: str
    reason: str
    """approval, input, confirmation, breakpoint, or a word of the graph's author."""
    schema: Any
    """JSON Schema of the answer; None takes any JSON."""
    state: str
    """open, answered, consumed, expired, cancelled or superseded."""
    assignees: tuple[str, ...]
    """Who should answer."""
    people: People | None
    """Who may answer and how many must; None for everybody, and one."""
    votes: tuple[Vote, ...]
    """How those have voted who may answer, in order, until the answer is decided."""
    delegates: Mapping[str, str]
    """Who answers in whose place: the delegate by the user who has named the delegate."""
    claimed_by: str
    """Who has claimed it last; the claim holds until ``claim_expires_at``. "" for none."""
    claim_expires_at: datetime.datetime | None
    priority: str
    """low, normal, high or urgent."""
    due_at: datetime.datetime | None
    """When its next step is taken, or it expires; None for never."""
    key: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    response: Any
    dismissed: bool
    responder: str
    """The caller that answered; "" when the server knows no callers."""
    effective_at: datetime.datetime | None
    """When the answer takes effect: until then ``inbox.retract`` takes it back. None for at once."""
    undo: datetime.timedelta
    """How long an answer can be taken back; zero for not at all."""
    note: str
    replaces: str
    """Id of the question in whose place it was asked; "" for none."""
    differs: tuple[str, ...]
    """JSON pointers to what differs from that question."""
    etag: str = field(repr=False)
    """Changes with the question. A change with it is refused when the question has changed by then."""
    seen: str = field(repr=False)
    """Digest of what the question shows. An answer with it is refused when it shows something else by then."""
    secret: tuple[str, ...] = ()
    """JSON pointers to the parts of the value and of answers that not everybody sees: ``{"__redacted__": true}`` is in
    their place, and ``inbox.reveal`` shows them."""
    allowed: frozenset[str] = field(default=frozenset(), compare=False)
    """What the caller may do with it: "answer", "claim", "release", "comment", "delegate", "assign", "extend",
    "end_claim", "retract", "reveal", "link" and "cancel", the run. Set by ``inbox.get`` and by calls that change a
    question; empty in lists and watches. Questions that differ in nothing else are equal."""


@dataclass(frozen=True)
class Revealed:
    """A question with its secret parts."""

    value: Any = field(repr=False)
    default: Any = field(repr=False)
    """The default answer; None also when it has none."""
    response: Any = field(repr=False)
    """The answer, without the secret parts for a caller who may not see those of the answer."""
    entry: TrailEntry
    """The entry in the trail that says who has seen what."""


@dataclass(frozen=True)
class QuestionChange:
    """A question that is new or has changed, in a watch of the inbox."""

    question: Question
    is_initial: bool
    """It was open when the watch began."""
    is_gone: bool
    """The watch is not about it any more: it is assigned to others, has another priority, or a state that was not
    asked for. That may come more than once, and for a question that was not shown."""
    token: str = field(repr=False)
    """Where to go on after it, with ``inbox.watch(after=…)``; "" while initial questions come. Of changes that came
    together, all but the last have the token from before them."""


@dataclass(frozen=True)
class Answer:
    """The answer to a question."""

    value: Any
    """Any JSON, None included. It must fit the schema of the question."""
    question_id: str = ""
    """"" for the only question that is open."""
    note: str = ""
    """A remark that is stored beside it."""
    etag: str = ""
    """That of the question that was shown; "" for any. It changes when others vote."""
    seen: str = ""
    """The digest of what was shown; "" for any."""


@dataclass(frozen=True)
class Dismissal:
    """Says that a question gets no answer: the node is told, as InterruptDismissed."""

    reason: str
    question_id: str = ""
    """"" for the only question that is open."""
    etag: str = ""
    seen: str = ""


@dataclass(frozen=True)
class Vote:
    """The answer of one person to a question that several decide."""

    principal: str
    value: Any
    """The answer; None also for one who declined."""
    agrees: bool
    dismissed: bool
    """The voter declined to answer."""
    note: str
    time: datetime.datetime | None


def _read_people(people: interrupt_pb2.People) -> People:
    return People(
        users=tuple(people.users) or None,
        groups=tuple(people.groups) or None,
        approvals=max(people.approvals, 1),
        vetoes=max(people.vetoes, 1),
        agree=people.agree,
        not_requester=people.not_requester,
        exclusive=people.exclusive,
        requester=people.requester,
        not_contributor=people.not_contributor,
        delegable=people.delegable,
        reveal_users=tuple(people.reveal.users),
        reveal_groups=tuple(people.reveal.groups),
    )


def _read_vote(vote: interrupt_pb2.Vote) -> Vote:
    return Vote(
        principal=vote.principal,
        value=read_value(vote, "value"),
        agrees=vote.agrees,
        dismissed=not vote.HasField("value"),
        note=vote.note,
        time=read_time(vote, "time"),
    )


def read_question(question: interrupt_pb2.Interrupt) -> Question:
    """A question of the server."""
    return Question(
        question_id=question.interrupt_id,
        thread_id=public_thread(question.thread_id),
        run_id=question.run_id,
        graph=question.graph,
        node=public_name(question.node),
        namespace=public_levels(question.checkpoint.namespace),
        value=read_value(question, "value"),
        message=question.message,
        reason=question.reason,
        schema=read_value(question, "response_schema"),
        state=read_word(interrupt_pb2.InterruptState, question.state, "INTERRUPT_STATE_"),
        assignees=tuple(question.assignees),
        people=_read_people(question.people) if question.HasField("people") else None,
        votes=tuple(_read_vote(v) for v in question.votes),
        delegates={getattr(one, "from"): one.to for one in question.delegations},
        claimed_by=question.claimed_by,
        claim_expires_at=read_time(question, "claim_expire_time"),
        priority=read_word(interrupt_pb2.Priority, question.priority, "PRIORITY_"),
        due_at=read_time(question, "due_time"),
        key=question.key,
        created_at=read_time(question, "create_time"),
        updated_at=read_time(question, "update_time"),
        expires_at=read_time(question, "expire_time"),
        response=read_value(question, "response"),
        dismissed=question.dismissed,
        responder=question.responder,
        effective_at=read_time(question, "effective_time"),
        undo=question.undo.ToTimedelta(),
        note=question.note,
        replaces=question.replaces,
        differs=tuple(question.differs),
        etag=question.etag,
        seen=question.seen,
        secret=tuple(question.secret),
        allowed=frozenset(
            read_word(interrupt_pb2.InterruptAction, action, "INTERRUPT_ACTION_") for action in question.allowed
        ),
    )


def read_revealed(revealed: ins.RevealInterruptResponse) -> Revealed:
    """A question of the server with its secret parts."""
    return Revealed(
        value=read_value(revealed, "value"),
        default=read_value(revealed, "default_response"),
        response=read_value(revealed, "response"),
        entry=read_entry(revealed.entry),
    )


def read_change(change: ins.InterruptChange, token: str, *, is_initial: bool) -> QuestionChange:
    """A change of the server."""
    return QuestionChange(read_question(change.interrupt), is_initial, change.gone, token)


Answers = Mapping[str, Any] | Answer | Dismissal | Sequence[Answer | Dismissal] | None
"""Values by ``question_id``, one answer or several; None goes on after breakpoints."""


def write_answers(answers: Answers) -> list[run_pb2.InterruptResponse]:
    """Answers as the server takes them: by id, one or several, or none for breakpoints."""
    if answers is None:
        return []
    if isinstance(answers, (Answer, Dismissal)):
        return [_write_answer(answers)]
    if not answers:
        raise ValueError("answers is empty: want at least one, or None to go on after breakpoints")
    if isinstance(answers, Mapping):
        return [_write_answer(Answer(value, _check_id(key))) for key, value in answers.items()]
    if len(answers) > 1:
        for one in answers:
            _check_id(one.question_id)
    return [_write_answer(one) for one in answers]


def _check_id(question_id: Any) -> str:
    if not isinstance(question_id, str) or not question_id:
        raise ValueError(f"answers: {question_id!r} is no id of a question; want Question.question_id, or Interrupt.id")
    return question_id


def _write_answer(answer: Any) -> run_pb2.InterruptResponse:
    if isinstance(answer, Dismissal):
        dismissal = run_pb2.Dismissal(reason=answer.reason)
        return run_pb2.InterruptResponse(
            interrupt_id=answer.question_id, dismissal=dismissal, etag=answer.etag, seen=answer.seen
        )
    if not isinstance(answer, Answer):
        raise TypeError(
            f"answers: {type(answer).__name__} is no answer; want a dict of values by question_id, Answer or Dismissal"
        )
    return run_pb2.InterruptResponse(
        interrupt_id=answer.question_id,
        value=codec.to_payload(answer.value),
        etag=answer.etag,
        seen=answer.seen,
        note=answer.note,
    )
