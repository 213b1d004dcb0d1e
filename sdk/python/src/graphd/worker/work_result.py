"""What came of the code of an attempt: a result, questions, or a failure."""

from __future__ import annotations

import asyncio
from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.errors import GraphBubbleUp, GraphInterrupt, NodeCancelledError, ParentCommand
from graphd.runtime.called_command import CalledCommand
from graphd.runtime.exception_text import add_note
from graphd.runtime.local_runs import note_error
from graphd.values.policy import RetryPolicy
from graphd.worker import outcome
from graphd.worker.work import Work


def build_returned(work: Work, value: Any) -> pb.TaskResult:
    """The result of code that has returned a value; raises what makes it none."""
    work.returned = value
    work.task.replay.check_finished()
    is_asking = work.task.replay.questions or work.task.waiting  # the node caught the interrupt
    return _add_used_answers(work, _build_interrupted(work) if is_asking else work.finish(value))


def build_raised(work: Work, error: BaseException) -> pb.TaskResult:
    """The result of code that has raised something: it asks, sends a command to its parent, or has failed."""
    work.raised = error
    return _add_used_answers(work, _explain_end(work, error))


def _explain_end(work: Work, error: BaseException) -> pb.TaskResult:
    try:
        asks = bool(work.task.replay.questions or work.task.waiting)
        if isinstance(error, GraphInterrupt) and not asks:
            _file_questions(work, error)
        if isinstance(error, GraphInterrupt) or (asks and isinstance(error, GraphBubbleUp)):
            work.task.replay.check_finished()
            return _build_interrupted(work)
        if isinstance(error, CalledCommand):
            return pb.TaskResult(completed=error.outcome)
        if isinstance(error, ParentCommand) and work.task.depth:
            return pb.TaskResult(completed=outcome.build_parent_command(error.command, work.ids))
    except Exception as broken:  # the question has no JSON form, or differs from the journal
        error = broken.for_node(work.node) if isinstance(broken, outcome.UnsendableError) else broken
    if isinstance(error, asyncio.CancelledError) and work.local is not None and work.local.cancelled:
        return pb.TaskResult(cancelled=pb.TaskCancelled(note="the caller of the run was cancelled"))
    if isinstance(error, asyncio.CancelledError):
        error = NodeCancelledError(work.node)
    try:
        return _build_failed(work, error, work.policies())
    except Exception as broken:  # retry_on is code as well: what it raises takes the place of the error
        return _build_failed(work, broken, ())


def _add_used_answers(work: Work, result: pb.TaskResult) -> pb.TaskResult:
    """The result, with the answers that the attempt has used."""
    if work.task.replay.used and not result.HasField("failed"):
        result.used.extend(outcome.build_used_answers(work.task.replay.used))
    return result


def _build_interrupted(work: Work) -> pb.TaskResult:
    work.task.replay.order_questions_by_call()
    questions = outcome.build_asks(work.task.replay.questions)
    waiting = pb.TaskInterrupted(asks=questions, waiting_interrupt_ids=work.task.waiting)
    if work.local is not None:
        work.local.refused.extend(work.task.refused)
    return pb.TaskResult(interrupted=waiting)


def _build_failed(work: Work, error: BaseException, policies: tuple[RetryPolicy, ...]) -> pb.TaskResult:
    failure = outcome.build_failed(error, policies)
    work.error = error
    if work.local is not None:
        add_note(error, f"During task with name {work.node!r} and id {work.task.host.task!r}")
    host = work.task.host
    note_error(host.target, host.thread, host.task, error)
    return pb.TaskResult(failed=failure)


def _file_questions(work: Work, error: GraphInterrupt) -> None:
    # NodeInterrupt and the like: raised by hand, so ask on its behalf. An
    # answer it has already does not stop it, it wants to stop.
    for question in error.interrupts:
        work.task.replay.file_question(question.value)


__all__ = ["build_raised", "build_returned"]
