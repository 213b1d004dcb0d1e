"""The inbox: the questions of all threads, and answers to them."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import Any

from graphd.remote import inbox_calls, run_calls
from graphd.remote.bulk_answer import (
    AnswerOutcome,
    BulkAnswer,
    aanswer_questions,
    answer_questions,
    split_questions,
)
from graphd.remote.caller import AsyncCaller, Caller
from graphd.remote.inbox_calls import Keep
from graphd.remote.inbox_watch import ResumableWatch, aread_changes, read_changes
from graphd.remote.question import Answer, Dismissal, Question, QuestionChange
from graphd.remote.run import Run
from graphd.remote.run_options import ResumeOptions
from graphd.remote.trail import TrailEntry
from graphd.transport.attempts import Deadline
from graphd.transport.unary import Call

_KEEP = ResumeOptions()


class Inbox:
    """The questions of a server."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        state: str = "open",
    ) -> Iterator[Question]:
        """Lists the questions that fit all arguments, oldest first. ``state="*"`` lists those that are closed, too."""
        condition = inbox_calls.build_filter(
            thread_id=thread_id, graph=graph, node=node, reason=reason, assignee=assignee, state=state
        )
        return self._caller.list_entries(lambda token: inbox_calls.list_questions(condition, token))

    def watch(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        state: str | None = None,
        after: str = "",
        timeout: float | None = None,
    ) -> Generator[QuestionChange, None, None]:
        """Yields the open questions, and then each question that is new or changes, until it is closed.

        Changes that follow each other quickly are shown as one. Without a ``state`` changes to every state are
        shown. ``after`` is the ``token`` of a change: the watch goes on after it. After ``timeout`` seconds
        CallTimeoutError is raised.
        """
        condition = inbox_calls.build_filter(
            thread_id=thread_id, graph=graph, node=node, reason=reason, assignee=assignee, state=state
        )
        return read_changes(self._caller.server, ResumableWatch(condition, after, Deadline(timeout)))

    def get(self, thread_id: str, question_id: str) -> Question:
        """Reads a question."""
        return self._caller.perform(inbox_calls.get_question(thread_id, question_id))

    def answer(self, question: Question, value: Any, *, note: str = "") -> Run:
        """Answers a question as it was read, and returns the run that goes on.

        ConflictError is raised when the question shows something else by now, InvalidResumeError when the answer
        does not fit its schema: the question stays open.
        """
        return self._caller.perform(_answer_call(question, value, note))

    def answer_many(
        self, questions: Iterable[Question], value: Any, *, note: str = "", request_id: str | None = None
    ) -> Sequence[AnswerOutcome]:
        """Gives one answer to many questions, as they were read, and tells what came of each.

        One that can't be answered is skipped, with the reason. The call goes on by itself after a lost connection. A
        program that may end meanwhile gives a ``request_id``: with the same one it goes on, and answers none twice.
        A GraphdError that ends the call has the ``outcomes`` until then, and the ``request_id`` to go on with.
        """
        answer = BulkAnswer.new(value, note, request_id)
        with answer.explain_failure():
            for part in split_questions(questions):
                self._caller.perform(answer_questions(part, answer))
        return answer.outcomes

    def dismiss(self, question: Question, reason: str = "") -> Run:
        """Says that a question gets no answer; its node may handle that."""
        return self._caller.perform(_dismiss_call(question, reason))

    def update(
        self,
        question: Question,
        *,
        assignees: Sequence[str] | None = None,
        expires_at: datetime.datetime | Keep | None = Keep.KEEP,
    ) -> Question:
        """Changes who should answer an open question as it was read, and when it expires; None is never.

        Raises ConflictError, or NothingToResumeError for a question that is not open.
        """
        return self._caller.perform(inbox_calls.update_question(question, assignees, expires_at))

    def claim(self, question: Question, seconds: float | None = None) -> Question:
        """Claims an open question: others see that the caller looks after it, for 15 minutes or so many seconds.

        The claim of the holder again extends it. Raises GraphdError with the reason INTERRUPT_CLAIMED while another
        caller holds one.
        """
        return self._caller.perform(inbox_calls.claim_question(question, seconds))

    def release(self, question: Question, note: str = "") -> Question:
        """Gives up the caller's claim."""
        return self._caller.perform(inbox_calls.release_question(question, note))

    def retract(self, question: Question, note: str = "") -> Question:
        """Takes the caller's answer back before it takes effect, or the caller's vote: the question is open again.

        Raises GraphdError with the reason RESPONSE_IN_EFFECT when the run has gone on with the answer.
        """
        return self._caller.perform(inbox_calls.retract_response(question, note))

    def comment(self, question: Question, text: str) -> TrailEntry:
        """Adds a comment to the trail of an open question. It answers nothing."""
        return self._caller.perform(inbox_calls.comment_question(question, text))

    def trail(self, question: Question) -> Iterator[TrailEntry]:
        """Lists what happened to a question, oldest first."""
        return self._caller.list_entries(lambda token: inbox_calls.list_trail(question, token))


class AsyncInbox:
    """The questions of a server, for async programs. The methods are those of Inbox."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        state: str = "open",
    ) -> AsyncIterator[Question]:
        """Like Inbox.list; for ``async for``."""
        condition = inbox_calls.build_filter(
            thread_id=thread_id, graph=graph, node=node, reason=reason, assignee=assignee, state=state
        )
        return self._caller.list_entries(lambda token: inbox_calls.list_questions(condition, token))

    def watch(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        state: str | None = None,
        after: str = "",
        timeout: float | None = None,
    ) -> AsyncGenerator[QuestionChange, None]:
        """Like Inbox.watch; for ``async for``."""
        condition = inbox_calls.build_filter(
            thread_id=thread_id, graph=graph, node=node, reason=reason, assignee=assignee, state=state
        )
        return aread_changes(self._caller.server, ResumableWatch(condition, after, Deadline(timeout)))

    async def get(self, thread_id: str, question_id: str) -> Question:
        """Like Inbox.get."""
        return await self._caller.perform(inbox_calls.get_question(thread_id, question_id))

    async def answer(self, question: Question, value: Any, *, note: str = "") -> Run:
        """Like Inbox.answer."""
        return await self._caller.perform(_answer_call(question, value, note))

    async def answer_many(
        self, questions: Iterable[Question], value: Any, *, note: str = "", request_id: str | None = None
    ) -> Sequence[AnswerOutcome]:
        """Like Inbox.answer_many."""
        answer = BulkAnswer.new(value, note, request_id)
        with answer.explain_failure():
            for part in split_questions(questions):
                await self._caller.perform(aanswer_questions(part, answer))
        return answer.outcomes

    async def dismiss(self, question: Question, reason: str = "") -> Run:
        """Like Inbox.dismiss."""
        return await self._caller.perform(_dismiss_call(question, reason))

    async def update(
        self,
        question: Question,
        *,
        assignees: Sequence[str] | None = None,
        expires_at: datetime.datetime | Keep | None = Keep.KEEP,
    ) -> Question:
        """Like Inbox.update."""
        return await self._caller.perform(inbox_calls.update_question(question, assignees, expires_at))

    async def claim(self, question: Question, seconds: float | None = None) -> Question:
        """Like Inbox.claim."""
        return await self._caller.perform(inbox_calls.claim_question(question, seconds))

    async def release(self, question: Question, note: str = "") -> Question:
        """Like Inbox.release."""
        return await self._caller.perform(inbox_calls.release_question(question, note))

    async def retract(self, question: Question, note: str = "") -> Question:
        """Like Inbox.retract."""
        return await self._caller.perform(inbox_calls.retract_response(question, note))

    async def comment(self, question: Question, text: str) -> TrailEntry:
        """Like Inbox.comment."""
        return await self._caller.perform(inbox_calls.comment_question(question, text))

    def trail(self, question: Question) -> AsyncIterator[TrailEntry]:
        """Like Inbox.trail; for ``async for``."""
        return self._caller.list_entries(lambda token: inbox_calls.list_trail(question, token))


def _answer_call(question: Question, value: Any, note: str) -> Call[Run]:
    answer = Answer(value, question.question_id, note=note, etag=_etag_for_answer(question), seen=question.seen)
    return run_calls.resume_run(run_calls.build_resume(question.thread_id, answer, _KEEP, subgraphs=False))


def _dismiss_call(question: Question, reason: str) -> Call[Run]:
    dismissal = Dismissal(reason, question.question_id, etag=_etag_for_answer(question), seen=question.seen)
    return run_calls.resume_run(run_calls.build_resume(question.thread_id, dismissal, _KEEP, subgraphs=False))


def _etag_for_answer(question: Question) -> str:
    """Votes, claims and comments of others change a question, and must not stand in the way of an answer to what it
    shows."""
    return "" if question.seen else question.etag
