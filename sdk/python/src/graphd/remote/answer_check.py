"""What an answer would do, before it is given."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.names import wire_thread
from graphd.remote.question import Answer, Question, write_answers
from graphd.transport.unary import Call


@dataclass(frozen=True)
class AnswerCheck:
    """What an answer would do."""

    decides: bool
    """It decides the question. Without it, it is a vote, or nothing new."""
    repeated: bool
    """The same answer of the caller is stored already: nothing would change."""
    missing_votes: int
    """How many more votes like it would decide."""
    undo: datetime.timedelta
    """How long it could be taken back; zero for not at all."""


def check_answer(question: Question, answer: Answer) -> Call[AnswerCheck]:
    """Checks an answer to a question, and stores nothing."""
    request = ins.CheckResponsesRequest(thread_id=wire_thread("", question.thread_id), responses=write_answers(answer))
    return Call(lambda s: s.interrupts.CheckResponses, request, _read_check)


def _read_check(checked: ins.CheckResponsesResponse) -> AnswerCheck:
    outcome = checked.outcomes[0]
    return AnswerCheck(outcome.decides, outcome.repeated, outcome.missing_votes, outcome.undo.ToTimedelta())


__all__ = ["AnswerCheck", "check_answer"]
