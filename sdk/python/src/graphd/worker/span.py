"""The span of a task, for OpenTelemetry."""

from __future__ import annotations

from contextlib import AbstractContextManager

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.spans import TaskSpan, trace_task


def span_task(assignment: pb.TaskAssignment) -> AbstractContextManager[TaskSpan]:
    """A span around the code of a task."""
    return trace_task(
        f"run {assignment.node or assignment.function}",
        assignment.trace,
        {
            "graphd.thread": assignment.thread_id,
            "graphd.run": assignment.run_id,
            "graphd.graph": assignment.graph,
            "graphd.graph_version": assignment.graph_version,
            "graphd.node": assignment.node,
            "graphd.task": assignment.task_id,
            "graphd.attempt": assignment.attempt,
            "graphd.delivery": assignment.delivery,
        },
    )


def note_end(span: TaskSpan, result: pb.TaskResult) -> None:
    """Says that a task has failed, if it has."""
    if result.HasField("failed"):
        span.note_failure(result.failed.type)


__all__ = ["note_end", "span_task"]
