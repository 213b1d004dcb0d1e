"""Combines writes with a reducer of the program."""

from __future__ import annotations

from graphd import codec
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program


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


__all__ = ["run_reducer"]
