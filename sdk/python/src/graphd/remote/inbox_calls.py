"""The calls about questions: their requests, and what the answers mean."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Sequence

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.names import wire_thread
from graphd.remote.caller import Page
from graphd.remote.link import Link, read_link
from graphd.remote.question import Question, Revealed, read_question, read_revealed
from graphd.remote.trail import TrailEntry, read_entry
from graphd.transport.unary import Call

_PAGE = 100


class Keep(enum.Enum):
    """Says that something stays as it is, where None means that there is none."""

    KEEP = "keep"


def list_questions(condition: str, order: str, token: str) -> Call[Page[Question]]:
    """Reads a page of questions."""
    request = ins.ListInterruptsRequest(filter=condition, order_by=order, page_size=_PAGE, page_token=token)
    return Call(
        lambda s: s.interrupts.ListInterrupts,
        request,
        lambda r: Page([read_question(one) for one in r.interrupts], r.next_page_token),
    )


def update_question(
    question: Question, assignees: Sequence[str] | None, expires_at: datetime.datetime | Keep | None
) -> Call[Question]:
    """Changes who should answer an open question, and when it expires."""
    request = ins.UpdateInterruptRequest()
    request.interrupt.thread_id = wire_thread("", question.thread_id)
    request.interrupt.interrupt_id = question.question_id
    request.interrupt.etag = question.etag
    if assignees is not None:
        request.interrupt.assignees.extend(assignees)
        request.update_mask.paths.append("assignees")
    if not isinstance(expires_at, Keep):
        request.update_mask.paths.append("expire_time")
        if expires_at is not None:
            if expires_at.tzinfo is None:
                raise ValueError(f"expires_at is {expires_at!r}: want a datetime with a time zone, or None for never")
            request.interrupt.expire_time.FromDatetime(expires_at)
    if not request.update_mask.paths:
        raise ValueError("nothing to change: want assignees or expires_at")
    return Call(lambda s: s.interrupts.UpdateInterrupt, request, read_question, repeatable=False)


def get_question(thread_id: str, question_id: str) -> Call[Question]:
    """Reads a question."""
    request = ins.GetInterruptRequest(thread_id=wire_thread("", thread_id), interrupt_id=question_id)
    return Call(lambda s: s.interrupts.GetInterrupt, request, read_question)


def claim_question(question: Question, seconds: float | None) -> Call[Question]:
    """Claims an open question for the caller."""
    request = ins.ClaimInterruptRequest(
        thread_id=wire_thread("", question.thread_id), interrupt_id=question.question_id
    )
    if seconds is not None:
        request.duration.FromTimedelta(datetime.timedelta(seconds=seconds))
    return Call(lambda s: s.interrupts.ClaimInterrupt, request, read_question, repeatable=False)


def release_question(question: Question, note: str) -> Call[Question]:
    """Gives up the claim of the caller."""
    request = ins.ReleaseInterruptRequest(
        thread_id=wire_thread("", question.thread_id), interrupt_id=question.question_id, note=note
    )
    return Call(lambda s: s.interrupts.ReleaseInterrupt, request, read_question, repeatable=False)


def reveal_question(question: Question, pointers: Sequence[str], note: str) -> Call[Revealed]:
    """Shows the secret parts of a question; each call has an entry in its trail."""
    request = ins.RevealInterruptRequest(
        thread_id=wire_thread("", question.thread_id),
        interrupt_id=question.question_id,
        pointers=pointers,
        note=note,
    )
    return Call(lambda s: s.interrupts.RevealInterrupt, request, read_revealed, repeatable=False)


def delegate_question(question: Question, to: str, note: str) -> Call[Question]:
    """Hands the caller's part in a question to another user."""
    request = ins.DelegateInterruptRequest(
        thread_id=wire_thread("", question.thread_id), interrupt_id=question.question_id, to=to, note=note
    )
    return Call(lambda s: s.interrupts.DelegateInterrupt, request, read_question, repeatable=False)


def make_link(
    question: Question, principal: str, groups: Sequence[str], valid: float | None, bound: bool
) -> Call[Link]:
    """Makes a link to an open question."""
    request = ins.MakeLinkRequest(
        thread_id=wire_thread("", question.thread_id),
        interrupt_id=question.question_id,
        principal=principal,
        groups=groups,
        bound=bound,
    )
    if valid is not None:
        request.valid.FromTimedelta(datetime.timedelta(seconds=valid))
    return Call(lambda s: s.interrupts.MakeLink, request, read_link)


def retract_response(question: Question, note: str) -> Call[Question]:
    """Takes the answer or the vote of the caller back."""
    request = ins.RetractResponseRequest(
        thread_id=wire_thread("", question.thread_id), interrupt_id=question.question_id, note=note
    )
    return Call(lambda s: s.interrupts.RetractResponse, request, read_question)


def comment_question(question: Question, text: str) -> Call[TrailEntry]:
    """Adds a comment to an open question."""
    request = ins.CommentInterruptRequest(
        thread_id=wire_thread("", question.thread_id),
        interrupt_id=question.question_id,
        text=text,
        request_id=uuid.uuid4().hex,
    )
    return Call(lambda s: s.interrupts.CommentInterrupt, request, read_entry)


def list_trail(question: Question, token: str) -> Call[Page[TrailEntry]]:
    """Reads a page of what happened to a question."""
    request = ins.ListTrailRequest(
        thread_id=wire_thread("", question.thread_id),
        interrupt_id=question.question_id,
        page_size=_PAGE,
        page_token=token,
    )
    return Call(
        lambda s: s.interrupts.ListTrail,
        request,
        lambda r: Page([read_entry(one) for one in r.entries], r.next_page_token),
    )
