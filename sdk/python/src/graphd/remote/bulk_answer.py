"""One answer to many questions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.declare.writes import build_payload
from graphd.remote.question import Question
from graphd.transport.unary import Call

_PER_CALL = 500  # so that a call takes its time for some


@dataclass(frozen=True)
class AnswerOutcome:
    """What came of one question of ``inbox.answer_many``."""

    thread_id: str
    question_id: str
    stored: bool
    """The answer is stored; with ``people`` it is a vote, and may not decide."""
    reason: str
    """Why it is not, like INTERRUPT_ALREADY_RESOLVED; "" when it is."""
    message: str


@dataclass(frozen=True)
class BulkAnswer:
    """The answer, and the id under which it is given."""

    value: Any
    note: str
    request_id: str

    @classmethod
    def new(cls, value: Any, note: str, request_id: str | None) -> BulkAnswer:
        """An answer; without an id, of a new one."""
        return cls(value, note, request_id or uuid.uuid4().hex)


def split_questions(questions: Iterable[Question]) -> Iterator[list[Question]]:
    """The questions of each call; ValueError without any."""
    left = list(questions)
    if not left:
        raise ValueError("there are 0 questions: want at least 1")
    while left:
        yield left[:_PER_CALL]
        left = left[_PER_CALL:]


def answer_questions(questions: Sequence[Question], answer: BulkAnswer) -> Call[list[AnswerOutcome]]:
    """Answers each question as it was read. Repeated, it answers those that are not answered yet."""
    request = _build_request(questions, answer)
    return Call(lambda s: s.interrupts.AnswerInterrupts, request, lambda stream: _read_outcomes(stream))


def aanswer_questions(questions: Sequence[Question], answer: BulkAnswer) -> Call[list[AnswerOutcome]]:
    """Like answer_questions, for async stubs."""
    request = _build_request(questions, answer)

    async def collect(stream: Any) -> list[ins.AnswerOutcome]:
        return [outcome async for outcome in stream]

    return Call(
        lambda s: lambda sent, timeout: collect(s.interrupts.AnswerInterrupts(sent, timeout=timeout)),
        request,
        _read_outcomes,
    )


def _build_request(questions: Sequence[Question], answer: BulkAnswer) -> ins.AnswerInterruptsRequest:
    targets = ins.AnswerInterruptsRequest.Targets()
    for question in questions:
        targets.targets.add(thread_id=question.thread_id, interrupt_id=question.question_id, seen=question.seen)
    return ins.AnswerInterruptsRequest(
        targets=targets,
        value=build_payload("the answer", answer.value),
        note=answer.note,
        request_id=answer.request_id,
    )


def _read_outcomes(outcomes: Iterable[ins.AnswerOutcome]) -> list[AnswerOutcome]:
    return [AnswerOutcome(o.thread_id, o.interrupt_id, o.stored, o.reason, o.message) for o in outcomes]


__all__ = ["AnswerOutcome", "BulkAnswer", "aanswer_questions", "answer_questions", "split_questions"]
