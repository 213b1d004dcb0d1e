"""Finds the code of an assignment, and builds what it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphd._gen.v1 import event_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import END, START
from graphd.declare.actions import Action
from graphd.declare.nodes import BranchDeclaration, NodeDeclaration
from graphd.declare.program import Program
from graphd.declare.schema import Schema
from graphd.declare.writes import build_gotos
from graphd.errors import InvalidUpdateError, NodeError
from graphd.names import public_name
from graphd.runtime.local_runs import LocalRun
from graphd.runtime.task import CurrentTask, Host
from graphd.values.command import Send
from graphd.worker import outcome
from graphd.worker.assignment_input import build_replay, read_failure, read_input
from graphd.worker.environment import AssignmentEnvironment
from graphd.worker.kept_values import KeptValue
from graphd.worker.message_ids import MessageIds
from graphd.worker.work import Work


def prepare_work(
    assignment: pb.TaskAssignment, program: Program, host: Host, local: LocalRun | None, kept: Mapping[str, KeptValue]
) -> Work:
    """Finds the code of an assignment and builds its arguments. kept are its channels that the worker keeps."""
    if assignment.kind == pb.TASK_KIND_ROUTER:
        return _prepare_branch(assignment, program, host, local, kept)
    node = program.nodes[public_name(assignment.node)]
    if node.action is None:
        raise LookupError(f"node {node.name!r} is a graph of its own")
    task = _build_task(assignment, program, host, local, node)
    extras = _build_extras(task, node.action)
    if assignment.HasField("failure"):
        extras["error"] = NodeError(public_name(assignment.failure.node), read_failure(assignment.failure, local))

    ids = MessageIds(program.message_keys, shown=event_pb2.CHANNEL_MESSAGES in assignment.emit)

    def finish(result: Any) -> pb.TaskResult:
        try:
            return pb.TaskResult(completed=outcome.build_completed(result, program.channels, ids, task.pushed))
        except outcome.UnsendableError as error:
            raise error.for_node(node.name) from error.__cause__

    state = read_input(assignment, node.schema, kept)
    arguments = node.action.bind_arguments(state, extras)
    return Work(
        task, node.action, arguments, finish, lambda: program.policies_of(node).retry or (), node.name, local, ids
    )


def _prepare_branch(
    assignment: pb.TaskAssignment, program: Program, host: Host, local: LocalRun | None, kept: Mapping[str, KeptValue]
) -> Work:
    source = public_name(assignment.node)
    branch = program.find_branch(source, assignment.function or assignment.branch)
    schema = _find_branch_schema(program, branch)
    task = _build_task(assignment, program, host, local, program.nodes.get(source))

    def finish(result: Any) -> pb.TaskResult:
        return pb.TaskResult(completed=pb.TaskCompleted(goto_targets=build_gotos(_read_routes(branch, result))))

    state = read_input(assignment, schema, kept)
    arguments = branch.action.bind_arguments(state, _build_extras(task, branch.action))
    return Work(task, branch.action, arguments, finish, tuple, source, local, MessageIds((), shown=False), branch)


def _find_branch_schema(program: Program, branch: BranchDeclaration) -> Schema:
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


__all__ = ["prepare_work"]
