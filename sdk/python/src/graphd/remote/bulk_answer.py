"""One answer to many questions."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.declare.writes import build_payload
from graphd.errors import GraphdError
from graphd.names import public_thread, wire_thread
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
    """The answer, the id under which it is given, and what came of it so far."""

    value: Any
    note: str
    request_id: str
    outcomes: list[AnswerOutcome] = field(default_factory=list)

    @classmethod
    def new(cls, value: Any, note: str, request_id: str | None) -> BulkAnswer:
        """An answer; without an id, of a new one."""
        return cls(value, note, request_id or uuid.uuid4().hex)

    @contextlib.contextmanager
    def explain_failure(self) -> Iterator[None]:
        """A block whose GraphdErrors tell what came of the answer before them."""
        try:
            yield
        except GraphdError as error:
            error.request_id, error.outcomes = self.request_id, list(self.outcomes)
            raise


def split_questions(questions: Iterable[Question]) -> Iterator[list[Question]]:
    """The questions of each call; ValueError without any."""
    left = list(questions)
    if not left:
        raise ValueError("there are 0 questions: want at least 1")
    while left:
        yield left[:_PER_CALL]
        left = left[_PER_CALL:]


def answer_questions(questions: Sequence[Question], answer: BulkAnswer) -> Call[None]:
    """Answers each question as it was read. Repeated, it asks for those without an outcome alone."""
    part = _Part(questions, answer)

    def collect(stream: Iterable[ins.AnswerOutcome]) -> None:
        try:
            for outcome in stream:
                part.add_outcome(outcome)
        except grpc.RpcError:
            if part.find_left():
                raise

    return Call(
        lambda s: lambda _, timeout: s.interrupts.AnswerInterrupts(part.build_request(), timeout=timeout),
        None,
        collect,
        has_progressed=part.has_progressed,
    )


def aanswer_questions(questions: Sequence[Question], answer: BulkAnswer) -> Call[None]:
    """Like answer_questions, for async stubs."""
    part = _Part(questions, answer)

    async def collect(stream: Any) -> None:
        try:
            async for outcome in stream:
                part.add_outcome(outcome)
        except grpc.RpcError:
            if part.find_left():
                raise

    return Call(
        lambda s: lambda _, timeout: collect(s.interrupts.AnswerInterrupts(part.build_request(), timeout=timeout)),
        None,
        lambda _: None,
        has_progressed=part.has_progressed,
    )


class _Part:
    """The questions of one call. Attempts at it may break, each after some outcomes."""

    def __init__(self, questions: Sequence[Question], answer: BulkAnswer) -> None:
        self._questions, self._answer = questions, answer
        self._known: set[tuple[str, str]] = set()
        self._known_before = 0

    def find_left(self) -> list[Question]:
        """The questions without an outcome."""
        return [q for q in self._questions if (wire_thread("", q.thread_id), q.question_id) not in self._known]

    def build_request(self) -> ins.AnswerInterruptsRequest:
        """Asks for the answers to what is left."""
        return _build_request(self.find_left(), self._answer)

    def add_outcome(self, outcome: ins.AnswerOutcome) -> None:
        o = outcome
        self._known.add((o.thread_id, o.interrupt_id))
        outcome_of = public_thread(o.thread_id), o.interrupt_id
        self._answer.outcomes.append(AnswerOutcome(*outcome_of, o.stored, o.reason, o.message))

    def has_progressed(self) -> bool:
        """Whether outcomes have come since the last time."""
        before, self._known_before = self._known_before, len(self._known)
        return self._known_before > before


def _build_request(questions: Sequence[Question], answer: BulkAnswer) -> ins.AnswerInterruptsRequest:
    targets = ins.AnswerInterruptsRequest.Targets()
    for question in questions:
        thread = wire_thread("", question.thread_id)
        targets.targets.add(thread_id=thread, interrupt_id=question.question_id, seen=question.seen)
    return ins.AnswerInterruptsRequest(
        targets=targets,
        value=build_payload("the answer", answer.value),
        note=answer.note,
        request_id=answer.request_id,
    )


__all__ = ["AnswerOutcome", "BulkAnswer", "aanswer_questions", "answer_questions", "split_questions"]
