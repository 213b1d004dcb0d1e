"""Threads, as clients see them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphd._gen.v1 import thread_pb2
from graphd.client.labels import from_labels
from graphd.names import public_thread
from graphd.remote.cursor import Cursor, read_cursor
from graphd.remote.fields import read_time, read_value, read_word
from graphd.remote.question import Question, read_question


@dataclass(frozen=True)
class Thread:
    """A conversation, case or job: the state of one graph with its history."""

    thread_id: str
    graph: str
    """Name of its graph; "" before its first run when it was made without."""
    version: str
    metadata: Mapping[str, Any]
    state: str
    """idle, busy, interrupted (waits for people) or failed (goes on where it failed)."""
    values: Any
    """The state as plain JSON; None unless it was asked for."""
    questions: tuple[Question, ...]
    """The open questions; empty unless they were asked for."""
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    """When it is deleted; None for never, or for a time after its last change (``ttl``)."""
    ttl: datetime.timedelta | None
    checkpoint_id: str
    """Its newest checkpoint; "" when it has none."""
    run_id: str
    """The run that is active, waits or ended last; "" when there was none."""
    cursor: Cursor | None
    """Its last event."""
    etag: str = field(repr=False)


def read_thread(thread: thread_pb2.Thread) -> Thread:
    """A thread of the server."""
    return Thread(
        thread_id=public_thread(thread.thread_id),
        graph=thread.graph,
        version=thread.graph_version,
        metadata=from_labels(thread.metadata),
        state=read_word(thread_pb2.ThreadState, thread.state, "THREAD_STATE_"),
        values=read_value(thread, "values"),
        questions=tuple(read_question(q) for q in thread.interrupts),
        created_at=read_time(thread, "create_time"),
        updated_at=read_time(thread, "update_time"),
        expires_at=read_time(thread, "expire_time"),
        ttl=thread.ttl.ToTimedelta() if thread.HasField("ttl") else None,
        checkpoint_id=thread.checkpoint.checkpoint_id,
        run_id=thread.run_id,
        cursor=read_cursor(thread.head),
        etag=thread.etag,
    )
