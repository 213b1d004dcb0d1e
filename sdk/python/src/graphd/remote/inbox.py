"""The inbox: the questions of all threads, and answers to them."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

from graphd.remote import inbox_calls, run_calls
from graphd.remote.answer_check import AnswerCheck, check_answer
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
from graphd.remote.link import Link
from graphd.remote.question import Answer, Dismissal, Question, QuestionChange, Revealed
from graphd.remote.question_count import CountFilter, QuestionCount, count_one, count_questions
from graphd.remote.question_filter import Due, Order, build_filter, read_order
from graphd.remote.question_statistics import (
    AnswerStatistics,
    QuestionStatistics,
    read_answers_of,
    read_statistics_of,
)
from graphd.remote.run import Run
from graphd.remote.run_options import ResumeOptions
from graphd.remote.trail import TrailEntry
from graphd.transport.attempts import Deadline
from graphd.transport.unary import Call
from graphd.values.steps import Priority

_KEEP = ResumeOptions()
_HOUR = datetime.timedelta(hours=1)


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
        group: str | None = None,
        claimed_by: str | None = None,
        priority: Priority | None = None,
        mine: bool = False,
        due_before: Due | None = None,
        order_by: Order | None = None,
        state: str = "open",
    ) -> Iterator[Question]:
        """Lists the questions that fit all arguments, oldest first. ``state="*"`` lists those that are closed, too.

        ``assignee`` is one of the users who should answer, ``group`` one of the groups. ``mine`` lists those for the
        caller, for a group of the caller, or claimed by the caller; the server must know its callers. ``due_before``
        lists those whose next step or expiry comes before a time, or before a while from now, the next due first.
        ``order_by`` is "created" or "due", which lists what has such a time.

        The server finds open questions by ``graph``, ``assignee``, ``group``, ``claimed_by``, ``priority``, ``mine``
        and ``due_before``. ``node``, ``reason`` and the priority "normal" need one of these beside them, or a
        ``thread_id``. Another ``state`` with one of them needs a ``thread_id``, too. GraphdError says what the server
        does not find.
        """
        condition = build_filter(
            thread_id=thread_id,
            graph=graph,
            node=node,
            reason=reason,
            assignee=assignee,
            group=group,
            claimed_by=claimed_by,
            priority=priority,
            mine=mine,
            due_before=due_before,
            state=state,
        )
        order = read_order(order_by)
        return self._caller.list_entries(lambda token: inbox_calls.list_questions(condition, order, token))

    def watch(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        group: str | None = None,
        priority: Priority | None = None,
        mine: bool = False,
        state: str | None = None,
        after: str = "",
        start_now: bool = False,
        timeout: float | None = None,
    ) -> Generator[QuestionChange, None, None]:
        """Yields the open questions, and then each question that is new or changes, until it is closed.

        Changes that follow each other quickly are shown as one. Without a ``state`` changes to every state are
        shown. ``after`` is the ``token`` of a change: the watch goes on after it. ``start_now`` leaves out the
        questions that are open: the watch begins with the changes from its first ``next`` on. After ``timeout``
        seconds CallTimeoutError is raised.

        The arguments of ``list`` that are not here can't be watched, and ``mine`` is without claims. A question that
        does not fit any more, because it was answered or assigned to others, comes once more, and ``is_gone``.
        """
        condition = build_filter(
            thread_id=thread_id,
            graph=graph,
            node=node,
            reason=reason,
            assignee=assignee,
            group=group,
            priority=priority,
            mine=mine,
            state=state,
        )
        watch = ResumableWatch(condition, after, Deadline(timeout), start_now=start_now)
        return read_changes(self._caller.server, watch)

    def count(
        self,
        *,
        graph: str | None = None,
        assignee: str | None = None,
        group: str | None = None,
        claimed_by: str | None = None,
        priority: Literal["low", "high", "urgent"] | None = None,
        mine: bool = False,
    ) -> QuestionCount:
        """Counts the open questions that fit one argument, all of them without any.

        The server counts without reading questions, so it counts by one condition. ``precision`` says how exact the
        count is.
        """
        call = count_one(
            graph=graph, assignee=assignee, group=group, claimed_by=claimed_by, priority=priority, mine=mine
        )
        return self._caller.perform(call)

    def count_each(self, filters: Iterable[CountFilter]) -> Sequence[QuestionCount]:
        """Counts the open questions of several filters at once, 32 at most, like ``[{}, {"mine": True}]``.

        Each is a dict with one argument of ``count``, or without any. For a caller who may see only some questions
        there are 4 at most.
        """
        return self._caller.perform(count_questions(filters))

    def statistics(self, *, interval: datetime.timedelta = _HOUR) -> QuestionStatistics:
        """Reads what became of questions in the last 24 hours: whether people keep up, over time and by group.

        The counts are those of the server that answers. They begin when it starts, and other servers have their own.
        ``interval`` is a multiple of 15 minutes that divides a day.
        """
        return self._caller.perform(read_statistics_of(interval))

    def answer_statistics(self, graph: str, node: str) -> AnswerStatistics:
        """Reads how the questions of a node were answered since the server that answers began to count."""
        return self._caller.perform(read_answers_of(graph, node))

    def get(self, thread_id: str, question_id: str) -> Question:
        """Reads a question."""
        return self._caller.perform(inbox_calls.get_question(thread_id, question_id))

    def answer(self, question: Question, value: Any, *, note: str = "") -> Run:
        """Answers a question as it was read, and returns the run that goes on.

        ConflictError is raised when the question shows something else by now, InvalidResumeError when the answer
        does not fit its schema: the question stays open.
        """
        return self._caller.perform(_answer_call(question, value, note))

    def check(self, question: Question, value: Any) -> AnswerCheck:
        """What an answer would do: it is checked as by ``answer``, with the same errors, and not stored."""
        return self._caller.perform(check_answer(question, _make_answer(question, value, "")))

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

    def delegate(self, question: Question, to: str, note: str = "") -> Question:
        """Hands the caller's part in an open question to another user: who is assigned, and who has claimed it.

        With ``People(delegable=True)`` the other one may answer, and the caller may not any more; ``to`` the own name
        takes the place back until the other one has voted.
        """
        return self._caller.perform(inbox_calls.delegate_question(question, to, note))

    def reveal(self, question: Question, pointers: Sequence[str] = (), note: str = "") -> Revealed:
        """Shows the secret parts of a question, and records in its trail who has seen which.

        ``pointers`` names some of ``question.secret``; left out, all. Who may: ``People.reveal_users`` and
        ``reveal_groups``, or else who may answer; those see of answers only their own.
        """
        return self._caller.perform(inbox_calls.reveal_question(question, pointers, note))

    def make_link(
        self,
        question: Question,
        principal: str = "",
        groups: Sequence[str] = (),
        *,
        valid: float | None = None,
        bound: bool = False,
    ) -> Link:
        """Makes a link by which one person answers an open question in a browser, without other credentials.

        Without ``principal`` it is for the caller. A link for another person needs the right link-others. ``groups``
        are those of that person. It is valid for 3 days, or ``valid`` seconds; with ``bound`` it ends with the next
        change of the question.
        """
        return self._caller.perform(inbox_calls.make_link(question, principal, groups, valid, bound))

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
        group: str | None = None,
        claimed_by: str | None = None,
        priority: Priority | None = None,
        mine: bool = False,
        due_before: Due | None = None,
        order_by: Order | None = None,
        state: str = "open",
    ) -> AsyncIterator[Question]:
        """Like Inbox.list; for ``async for``."""
        condition = build_filter(
            thread_id=thread_id,
            graph=graph,
            node=node,
            reason=reason,
            assignee=assignee,
            group=group,
            claimed_by=claimed_by,
            priority=priority,
            mine=mine,
            due_before=due_before,
            state=state,
        )
        order = read_order(order_by)
        return self._caller.list_entries(lambda token: inbox_calls.list_questions(condition, order, token))

    def watch(
        self,
        *,
        thread_id: str | None = None,
        graph: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        assignee: str | None = None,
        group: str | None = None,
        priority: Priority | None = None,
        mine: bool = False,
        state: str | None = None,
        after: str = "",
        start_now: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[QuestionChange, None]:
        """Like Inbox.watch; for ``async for``."""
        condition = build_filter(
            thread_id=thread_id,
            graph=graph,
            node=node,
            reason=reason,
            assignee=assignee,
            group=group,
            priority=priority,
            mine=mine,
            state=state,
        )
        watch = ResumableWatch(condition, after, Deadline(timeout), start_now=start_now)
        return aread_changes(self._caller.server, watch)

    async def count(
        self,
        *,
        graph: str | None = None,
        assignee: str | None = None,
        group: str | None = None,
        claimed_by: str | None = None,
        priority: Literal["low", "high", "urgent"] | None = None,
        mine: bool = False,
    ) -> QuestionCount:
        """Like Inbox.count."""
        call = count_one(
            graph=graph, assignee=assignee, group=group, claimed_by=claimed_by, priority=priority, mine=mine
        )
        return await self._caller.perform(call)

    async def count_each(self, filters: Iterable[CountFilter]) -> Sequence[QuestionCount]:
        """Like Inbox.count_each."""
        return await self._caller.perform(count_questions(filters))

    async def statistics(self, *, interval: datetime.timedelta = _HOUR) -> QuestionStatistics:
        """Like Inbox.statistics."""
        return await self._caller.perform(read_statistics_of(interval))

    async def answer_statistics(self, graph: str, node: str) -> AnswerStatistics:
        """Like Inbox.answer_statistics."""
        return await self._caller.perform(read_answers_of(graph, node))

    async def get(self, thread_id: str, question_id: str) -> Question:
        """Like Inbox.get."""
        return await self._caller.perform(inbox_calls.get_question(thread_id, question_id))

    async def answer(self, question: Question, value: Any, *, note: str = "") -> Run:
        """Like Inbox.answer."""
        return await self._caller.perform(_answer_call(question, value, note))

    async def check(self, question: Question, value: Any) -> AnswerCheck:
        """Like Inbox.check."""
        return await self._caller.perform(check_answer(question, _make_answer(question, value, "")))

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

    async def delegate(self, question: Question, to: str, note: str = "") -> Question:
        """Like Inbox.delegate."""
        return await self._caller.perform(inbox_calls.delegate_question(question, to, note))

    async def reveal(self, question: Question, pointers: Sequence[str] = (), note: str = "") -> Revealed:
        """Like Inbox.reveal."""
        return await self._caller.perform(inbox_calls.reveal_question(question, pointers, note))

    async def make_link(
        self,
        question: Question,
        principal: str = "",
        groups: Sequence[str] = (),
        *,
        valid: float | None = None,
        bound: bool = False,
    ) -> Link:
        """Like Inbox.make_link."""
        return await self._caller.perform(inbox_calls.make_link(question, principal, groups, valid, bound))

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
    answer = _make_answer(question, value, note)
    return run_calls.resume_run(run_calls.build_resume(question.thread_id, answer, _KEEP, subgraphs=False))


def _make_answer(question: Question, value: Any, note: str) -> Answer:
    return Answer(value, question.question_id, note=note, etag=_etag_for_answer(question), seen=question.seen)


def _dismiss_call(question: Question, reason: str) -> Call[Run]:
    dismissal = Dismissal(reason, question.question_id, etag=_etag_for_answer(question), seen=question.seen)
    return run_calls.resume_run(run_calls.build_resume(question.thread_id, dismissal, _KEEP, subgraphs=False))


def _etag_for_answer(question: Question) -> str:
    """Votes, claims and comments of others change a question, and must not stand in the way of an answer to what it
    shows."""
    return "" if question.seen else question.etag
