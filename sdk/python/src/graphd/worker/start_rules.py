"""Where an attempt runs, and whether it begins at once."""

from __future__ import annotations

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.names import public_name


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


__all__ = ["runs_on_loop", "waits_for_reader"]
