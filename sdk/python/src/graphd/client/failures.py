"""Failed runs as exceptions."""

from __future__ import annotations

import asyncio

from graphd._gen.v1 import payload_pb2, run_pb2
from graphd.errors import GraphDrained
from graphd.runtime.failures import RunFailed, node_error
from graphd.runtime.local_runs import LocalRun


def error_of_run(run: run_pb2.Run, local: LocalRun | None) -> BaseException | None:
    """What a stopped run raises in its caller; None when it raises nothing."""
    drained = local.control.drain_reason if local and local.control else None
    if run.state == run_pb2.RUN_STATE_INTERRUPTED and local and local.refused:
        return local.refused[0]
    if run.state == run_pb2.RUN_STATE_CANCELLED:
        return GraphDrained(drained) if drained is not None else asyncio.CancelledError(run.failure.message)
    if run.state == run_pb2.RUN_STATE_SUPERSEDED:
        return RunFailed("the run was replaced by a later input", reason="SUPERSEDED")
    if run.state not in (run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_TIMED_OUT):
        return None
    raised = local.find_error(run.failure) if local is not None else None
    return raised if raised is not None else node_error(run.failure, run.thread_id)


_CUT_OFF = {"CANCELLED_BY_CLIENT", "SIBLING_FAILED", "STEP_TIMEOUT"}


def stored_error(failure: payload_pb2.Failure) -> BaseException | None:
    """The error of a task in a snapshot; a command for a parent is none.

    A task that was cut off by something outside of it shows as cancelled.
    """
    if failure.type == "ParentCommand":
        return None
    if failure.reason in _CUT_OFF:
        return asyncio.CancelledError(failure.message)
    error = node_error(failure)
    return error if isinstance(error, Exception) else RuntimeError(failure.message)
