"""Runs, as clients see them."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphd._gen.v1 import run_pb2
from graphd.client.failures import error_of_run
from graphd.client.labels import from_labels
from graphd.names import public_name, public_thread
from graphd.remote.cursor import Cursor, read_cursor
from graphd.remote.fields import read_time, read_value, read_word
from graphd.runtime.failures import RunFailed

_STOPPED = {"interrupted", "succeeded", "failed", "cancelled", "timed_out", "superseded"}


@dataclass(frozen=True)
class Failure:
    """Why a run has failed. ``reason`` is stable (docs/protocol.md), ``message`` is for people."""

    reason: str
    message: str
    node: str = ""
    """The node that failed; "" when none is to blame."""
    type: str = ""
    """The name of the node's own exception."""
    attempt: int = 0
    """Which attempt failed, 1 for the first; 0 when none was made."""
    details: Mapping[str, str] = field(default_factory=dict)
    stack: str = ""


@dataclass(frozen=True)
class Run:
    """One pass of a graph over a thread. It keeps its id when it goes on after answers."""

    run_id: str
    thread_id: str
    graph: str
    version: str
    state: str
    """queued, running, interrupted (waits for people), cancelling, succeeded, failed, cancelled, timed_out
    or superseded."""
    failure: Failure | None
    error: Exception | None = field(repr=False, compare=False)
    """What ``raise_error`` raises; None while the run goes on, waits or has succeeded."""
    metadata: Mapping[str, Any]
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None
    begins_at: datetime.datetime | None
    """When it begins at the earliest; None for a run that was to begin at once."""
    open_question_ids: tuple[str, ...]
    """The questions that it waits for; empty in lists."""
    output: Any
    """The output keys of the state as plain JSON, once it has succeeded."""
    started_by: str
    """The caller that started it; "" when the server knows no callers."""
    etag: str
    cursor: Cursor | None
    """The last event of the run so far; of a run just started or answered, the event before it."""

    @property
    def is_stopped(self) -> bool:
        """It has ended, or waits for people."""
        return self.state in _STOPPED

    def raise_error(self) -> None:
        """Raises why the run has not succeeded: the built-in exception of the node's, RemoteNodeError,
        GraphRecursionError, NodeTimeoutError and so on, or RunFailed with the reason."""
        if self.error is not None:
            raise self.error


def read_run(run: run_pb2.Run) -> Run:
    """A run of the server."""
    return Run(
        run_id=run.run_id,
        thread_id=public_thread(run.thread_id),
        graph=run.graph,
        version=run.graph_version,
        state=read_word(run_pb2.RunState, run.state, "RUN_STATE_"),
        failure=_read_failure(run),
        error=_build_error(run),
        metadata=from_labels(run.metadata),
        created_at=read_time(run, "create_time"),
        updated_at=read_time(run, "update_time"),
        begins_at=read_time(run, "begin_time"),
        open_question_ids=tuple(run.open_interrupt_ids),
        output=read_value(run, "output"),
        started_by=run.started_by,
        etag=run.etag,
        cursor=read_cursor(run.applied_through),
    )


def _read_failure(run: run_pb2.Run) -> Failure | None:
    if not run.HasField("failure"):
        return None
    failure = run.failure
    return Failure(
        reason=failure.reason,
        message=failure.message,
        node=public_name(failure.node),
        type=failure.type,
        attempt=failure.attempt,
        details=dict(failure.details),
        stack=failure.stack,
    )


def _build_error(run: run_pb2.Run) -> Exception | None:
    error = error_of_run(run, None)
    if error is None or isinstance(error, Exception):
        return error
    # A CancelledError would cancel the task of the reader.
    assert isinstance(error, asyncio.CancelledError)
    return RunFailed(str(error) or "the run was cancelled", reason="CANCELLED_BY_CLIENT")
