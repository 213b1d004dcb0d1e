"""The tracebacks of failed attempts, in the log of the worker.

The server is told the class and the text of an exception, and the end of its traceback. The whole of it is for
those who run the worker.
"""

from __future__ import annotations

import logging

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.names import public_name
from graphd.runtime import exception_text

log = logging.getLogger("graphd.worker")


def log_failure(assignment: pb.TaskAssignment, error: BaseException, *, is_raised_here: bool) -> None:
    """Logs a failed attempt: as an error, or as information when the caller is in this process and is
    raised the exception itself. The record has graph, node, thread_id, run_id, task_id and attempt."""
    what = {
        "graph": assignment.graph,
        "node": public_name(assignment.node) or assignment.function,
        "thread_id": assignment.thread_id,
        "run_id": assignment.run_id,
        "task_id": assignment.task_id,
        "attempt": assignment.attempt,
    }
    log.log(
        logging.INFO if is_raised_here else logging.ERROR,
        "graph %r, node %r failed with %s: thread %s, run %s, attempt %d",
        what["graph"],
        what["node"],
        exception_text.kind_of(error),
        what["thread_id"],
        what["run_id"],
        what["attempt"],
        exc_info=error,
        extra=what,
    )
