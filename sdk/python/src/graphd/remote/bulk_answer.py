"""One answer to many questions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.declare.writes import build_payload
from graphd.remote.question import Question
from graphd.transport.unary import Call

MOST = 10_000  # questions in one call


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


def answer_questions(questions: Sequence[Question], value: Any, note: str) -> Call[list[AnswerOutcome]]:
    """Answers each question as it was read. Repeated, it answers those that are not answered yet."""
    request = _build_request(questions, value, note)
    return Call(lambda s: s.interrupts.AnswerInterrupts, request, lambda stream: _read_outcomes(stream))


def aanswer_questions(questions: Sequence[Question], value: Any, note: str) -> Call[list[AnswerOutcome]]:
    """Like answer_questions, for async stubs."""
    request = _build_request(questions, value, note)

    async def collect(stream: Any) -> list[ins.AnswerOutcome]:
        return [outcome async for outcome in stream]

    return Call(
        lambda s: lambda sent, timeout: collect(s.interrupts.AnswerInterrupts(sent, timeout=timeout)),
        request,
        _read_outcomes,
    )


def _build_request(questions: Sequence[Question], value: Any, note: str) -> ins.AnswerInterruptsRequest:
    if not 1 <= len(questions) <= MOST:
        raise ValueError(f"there are {len(questions)} questions: want 1 to {MOST}")
    targets = ins.AnswerInterruptsRequest.Targets()
    for question in questions:
        targets.targets.add(thread_id=question.thread_id, interrupt_id=question.question_id, seen=question.seen)
    return ins.AnswerInterruptsRequest(
        targets=targets, value=build_payload("the answer", value), note=note, request_id=uuid.uuid4().hex
    )


def _read_outcomes(outcomes: Iterable[ins.AnswerOutcome]) -> list[AnswerOutcome]:
    return [AnswerOutcome(o.thread_id, o.interrupt_id, o.stored, o.reason, o.message) for o in outcomes]


__all__ = ["AnswerOutcome", "aanswer_questions", "answer_questions"]
