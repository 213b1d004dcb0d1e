"""Results of nodes that need not run again for the same input."""

from __future__ import annotations

from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.worker.work import Work


def _cache_key(program: Program, work: Work) -> str | None:
    node = program.nodes.get(work.node) if program.cache is not None and work.branch is None else None
    policy = program.policies_of(node).cache if node is not None else None
    if policy is None:
        return None
    positional, _ = work.arguments
    key: Any = policy.key_func(*positional)
    return program.cache_prefix(work.node) + (key.hex() if isinstance(key, bytes) else str(key))


def look_up_result(program: Program, work: Work) -> pb.TaskResult | None:
    """The result that the node had for the same input."""
    key = _cache_key(program, work)
    known = program.cache.read(key) if key is not None else None
    if known is None:
        return None
    result = pb.TaskResult.FromString(known)
    result.completed.cached = True
    return result


def store_result(program: Program, work: Work, result: pb.TaskResult) -> None:
    """Keeps the result of a node that has run to its end."""
    key = _cache_key(program, work) if result.HasField("completed") else None
    if key is not None:
        policy = program.policies_of(program.nodes[work.node]).cache
        kept = pb.TaskResult(completed=result.completed)  # the answers it has used are of this task alone
        program.cache.write(key, kept.SerializeToString(), policy.ttl if policy else None)
