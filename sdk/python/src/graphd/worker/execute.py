"""Runs one assignment: node, error handler, conditional edge or reducer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2, payload_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import END, START
from graphd.declare.actions import Action
from graphd.declare.nodes import BranchDeclaration, NodeDeclaration
from graphd.declare.program import Program
from graphd.declare.schema import Schema
from graphd.declare.writes import build_gotos
from graphd.errors import (
    GraphBubbleUp,
    GraphInterrupt,
    InvalidUpdateError,
    NodeCancelledError,
    NodeError,
    ParentCommand,
)
from graphd.names import public_name
from graphd.runtime.called_command import CalledCommand
from graphd.runtime.exception_text import add_note
from graphd.runtime.failures import node_error
from graphd.runtime.local_runs import LocalRun
from graphd.runtime.replay import Answer, DriftRules, Place, Replay
from graphd.runtime.task import CurrentTask, Host
from graphd.values.command import Send
from graphd.values.policy import RetryPolicy
from graphd.worker import outcome
from graphd.worker.environment import AssignmentEnvironment
from graphd.worker.message_ids import MessageIds


@dataclass
class Work:
    """An assignment, prepared: what to call, with what, and how to end it."""

    task: CurrentTask
    action: Action
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    finish: Callable[[Any], pb.TaskResult]
    policies: Callable[[], tuple[RetryPolicy, ...]]
    node: str
    local: LocalRun | None
    ids: MessageIds
    branch: BranchDeclaration | None = None
    streams: bool = False
    """A runnable is to stream, because a reader or a handler is told of its pieces."""
    returned: Any = None
    raised: BaseException | None = None
    error: BaseException | None = None
    """What the attempt has failed with."""

    @property
    def state(self) -> Any:
        """What the code is called with."""
        positional, _ = self.arguments
        return positional[0] if positional else {}


def build_replay(journal: pb.Journal) -> Replay:
    """The journal of an assignment, ready to be matched."""
    answers: dict[Place, Answer] = {}
    memos: dict[Place, Any] = {}
    for entry in journal.entries:
        place = Place(entry.scope, entry.key, entry.index)
        if entry.WhichOneof("entry") == "memo":
            memos[place] = codec.value_of(entry.memo)
        else:
            answers[place] = _read_answer(entry.answer)
    return Replay(answers, memos, DriftRules(outcome.drift_of(journal.drift), tuple(journal.drift_ignore)))


def _read_answer(answer: pb.Answer) -> Answer:
    match answer.WhichOneof("outcome"):
        case "value":
            return Answer(codec.value_of(answer.value), seen=answer.seen)
        case "dismissed":
            return Answer(dismissed=answer.dismissed.reason, seen=answer.seen)
    return Answer(expired=True, seen=answer.seen)


def runs_on_loop(assignment: pb.TaskAssignment, program: Program) -> bool:
    """Whether an assignment is a coroutine that nothing has to wait for before it begins.

    A result may be looked up in a cache before, which takes a thread.
    """
    if assignment.kind == pb.TASK_KIND_REDUCER:
        return False
    node = program.nodes.get(public_name(assignment.node))
    if assignment.kind == pb.TASK_KIND_ROUTER:
        branch = program.builder.branches.get(public_name(assignment.node), {}).get(
            assignment.branch or assignment.function
        )
        return branch is not None and branch.action.is_async
    if node is None or node.action is None or not node.action.is_async:
        return False
    return program.cache is None or program.policies_of(node).cache is None


def waits_for_reader(assignment: pb.TaskAssignment, program: Program) -> bool:
    """Whether an assignment is a node of the root graph, which begins in the pace of the reader of its run.

    The time that a node has is counted by the server, also while a reader is slow, so nodes
    with limits of time don't wait.
    """
    if assignment.kind != pb.TASK_KIND_NODE or assignment.namespace or program.step_timeout is not None:
        return False
    node = program.nodes.get(public_name(assignment.node))
    return node is not None and program.policies_of(node).timeout is None


def prepare_work(assignment: pb.TaskAssignment, program: Program, host: Host, local: LocalRun | None) -> Work:
    """Finds the code of an assignment and builds its arguments."""
    if assignment.kind == pb.TASK_KIND_ROUTER:
        return _prepare_branch(assignment, program, host, local)
    node = program.nodes[public_name(assignment.node)]
    if node.action is None:
        raise LookupError(f"node {node.name!r} is a graph of its own")
    task = _build_task(assignment, program, host, local, node)
    extras = _build_extras(task, node.action)
    if assignment.HasField("failure"):
        extras["error"] = NodeError(public_name(assignment.failure.node), _read_failure(assignment.failure, local))

    ids = MessageIds(program.message_keys, shown=event_pb2.CHANNEL_MESSAGES in assignment.emit)

    def finish(result: Any) -> pb.TaskResult:
        try:
            return pb.TaskResult(completed=outcome.build_completed(result, program.channels, ids, task.pushed))
        except outcome.UnsendableError as error:
            raise error.for_node(node.name) from error.__cause__

    state = _read_input(assignment, node.schema)
    arguments = node.action.bind_arguments(state, extras)
    return Work(
        task, node.action, arguments, finish, lambda: program.policies_of(node).retry or (), node.name, local, ids
    )


def _prepare_branch(assignment: pb.TaskAssignment, program: Program, host: Host, local: LocalRun | None) -> Work:
    source = public_name(assignment.node)
    branch = program.find_branch(source, assignment.branch or assignment.function)
    schema = _branch_schema(program, branch)
    task = _build_task(assignment, program, host, local, program.nodes.get(source))

    def finish(result: Any) -> pb.TaskResult:
        return pb.TaskResult(completed=pb.TaskCompleted(goto_targets=build_gotos(_read_routes(branch, result))))

    state = _read_input(assignment, schema)
    arguments = branch.action.bind_arguments(state, _build_extras(task, branch.action))
    return Work(task, branch.action, arguments, finish, tuple, source, local, MessageIds((), shown=False), branch)


def _branch_schema(program: Program, branch: BranchDeclaration) -> Schema:
    declared = branch.action.state_type
    known = next((s for s in program.builder.schemas.values() if s.type is declared), None)
    if known is not None:
        return known
    if branch.source == START:
        return program.builder.input
    source = program.nodes.get(branch.source)
    return program.builder.state if source is None else source.schema


def _read_routes(branch: BranchDeclaration, result: Any) -> list[Any]:
    chosen = list(result) if isinstance(result, (list, tuple)) else [result]
    if branch.paths is not None:
        chosen = [c if isinstance(c, Send) else branch.paths[c] for c in chosen]
    for one in chosen:
        if one is None or one == START:
            raise ValueError("Branch did not return a valid destination")
        if isinstance(one, Send) and one.node == END:
            raise InvalidUpdateError("Cannot send a packet to the END node")
    return chosen


def run_reducer(assignment: pb.TaskAssignment, program: Program) -> pb.TaskResult:
    """Combines the writes of a superstep to one key."""
    reduction = assignment.reduction
    channel = program.channels[assignment.function or reduction.channel]
    function = channel.declare().function
    if function is None:
        raise LookupError(f"channel {reduction.channel!r} has no reducer in this program")
    decode = codec.decoder_of(channel.typ)
    writes = [decode(codec.value_of(w)) for w in reduction.writes]
    if reduction.HasField("current"):
        current = decode(codec.value_of(reduction.current))
    else:
        current, writes = writes[0], writes[1:]
    return pb.TaskResult(completed=pb.TaskCompleted(update=codec.to_payload(function(current, writes))))


def run_work(work: Work) -> pb.TaskResult:
    """Calls the code and says what came of it."""
    positional, named = work.arguments
    try:
        with work.task.running.end_calls():
            result = work.action.call(*positional, **named)
        if inspect.isawaitable(result):
            raise TypeError(f"node {work.node!r} returned a coroutine from a plain function; make it async")
        work.returned = result
        return _add_used_answers(work, _finish_work(work, lambda: work.finish(result)))
    except BaseException as error:  # every end of a node is a result
        return _add_used_answers(work, _build_error_result(work, error))


async def arun_work(work: Work) -> pb.TaskResult:
    """Like run_work, for async code."""
    positional, named = work.arguments
    try:
        async with work.task.running.aend_calls():
            if work.streams and work.action.stream is not None:
                value = await _add_pieces(work.action.stream(*positional, **named))
            else:
                result: Awaitable[Any] = work.action.call(*positional, **named)
                value = await result
        work.returned = value
        return _add_used_answers(work, _finish_work(work, lambda: work.finish(value)))
    except BaseException as error:  # every end of a node is a result
        return _add_used_answers(work, _build_error_result(work, error))


async def _add_pieces(pieces: AsyncIterator[Any]) -> Any:
    """The result of a runnable that streams."""
    result = None
    async for piece in pieces:
        try:
            result = piece if result is None else result + piece
        except TypeError:
            result = piece
    return result


def _add_used_answers(work: Work, result: pb.TaskResult) -> pb.TaskResult:
    """The result, with the answers that the attempt has used."""
    if work.task.replay.used and not result.HasField("failed"):
        result.used.extend(outcome.build_used_answers(work.task.replay.used))
    return result


def _finish_work(work: Work, finish: Callable[[], pb.TaskResult]) -> pb.TaskResult:
    work.task.replay.check_finished()
    if work.task.replay.questions or work.task.waiting:
        return _build_interrupted(work)  # the node caught the interrupt
    return finish()


def _build_interrupted(work: Work) -> pb.TaskResult:
    work.task.replay.order_questions_by_call()
    questions = outcome.build_asks(work.task.replay.questions)
    waiting = pb.TaskInterrupted(asks=questions, waiting_interrupt_ids=work.task.waiting)
    if work.local is not None:
        work.local.refused.extend(work.task.refused)
    return pb.TaskResult(interrupted=waiting)


def _build_error_result(work: Work, error: BaseException) -> pb.TaskResult:
    work.raised = error
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


def _build_failed(work: Work, error: BaseException, policies: tuple[RetryPolicy, ...]) -> pb.TaskResult:
    failure = outcome.build_failed(error, policies)
    work.error = error
    if work.local is not None:
        add_note(error, f"During task with name {work.node!r} and id {_error_key(work)!r}")
        work.local.errors[_error_key(work)] = error
    return pb.TaskResult(failed=failure)


def _error_key(work: Work) -> str:
    info = work.task.runtime.execution_info
    return info.task_id if info else ""


def _file_questions(work: Work, error: GraphInterrupt) -> None:
    # NodeInterrupt and the like: raised by hand, so ask on its behalf. An
    # answer it has already does not stop it, it wants to stop.
    for question in error.interrupts:
        work.task.replay.file_question(question.value)


def _read_failure(failure: payload_pb2.Failure, local: LocalRun | None) -> BaseException:
    if local is not None and (raised := local.find_error(failure)) is not None:
        return raised
    return node_error(failure)


def _read_input(assignment: pb.TaskAssignment, schema: Schema) -> Any:
    if assignment.HasField("send_input"):
        return _read_send(codec.value_of(assignment.send_input), schema)
    stored = {name: codec.value_of(value) for name, value in assignment.channels.items()}
    for name, managed in schema.managed().items():
        stored[name] = managed.get(assignment.step, assignment.stop_step)
    return schema.build_value(stored)


def _read_send(value: Any, schema: Schema) -> Any:
    if not isinstance(value, Mapping) or schema.is_root:
        return value
    read = {k: schema.keys[k].decode(v) if k in schema.keys else v for k, v in value.items()}
    return schema.construct(read) if set(read) <= set(schema.keys) else read


def _build_task(
    assignment: pb.TaskAssignment, program: Program, host: Host, local: LocalRun | None, node: NodeDeclaration | None
) -> CurrentTask:
    environment = AssignmentEnvironment(assignment, program, host, local, node)
    task = CurrentTask(host, build_replay(assignment.journal), environment, depth=len(assignment.namespace))
    if program.builder.context_schema is not None:
        _ = task.runtime  # a context that does not fit fails the task
    return task


def _build_extras(task: CurrentTask, action: Action) -> dict[str, Any]:
    if not action.wants:
        return {}
    return {
        "config": task.config,
        "writer": task.runtime.stream_writer,
        "store": task.runtime.store,
        "runtime": task.runtime,
        "previous": task.runtime.previous,
    }


__all__ = ["Work", "arun_work", "prepare_work", "run_reducer", "run_work", "runs_on_loop", "waits_for_reader"]
