"""What happened to a question."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from graphd._gen.v1 import interrupt_pb2
from graphd.names import public_thread
from graphd.remote.fields import read_time, read_value, read_word


@dataclass(frozen=True)
class TrailEntry:
    """One thing that happened to a question. It is never changed, and names the digest of the entry before."""

    number: int
    """1 for the first."""
    time: datetime.datetime | None
    kind: str
    """asked, claimed, released, changed, commented, voted, answered, used, reminded, escalated, expired, cancelled,
    superseded, copied, retracted, delegated or revealed."""
    principal: str
    """The caller; "" for what the server or the node did."""
    note: str
    """The caller's remark, or the text of a comment."""
    value: Any
    """Of a vote or an answer; None also for one that declines, and for one of more than 1 KiB."""
    value_digest: str
    """The digest of a larger value."""
    agrees: bool
    dismissed: bool
    """A vote or an answer that declines."""
    users: tuple[str, ...]
    """Who were reminded, or may answer as well."""
    groups: tuple[str, ...]
    priority: str
    """The new one; "" when it stays."""
    fields: tuple[str, ...]
    """What was changed: assignees, expire_time, claimed_by; or the JSON pointers of what was shown."""
    assignees: tuple[str, ...]
    until: datetime.datetime | None
    """The end of a claim, or the changed expiry."""
    from_thread_id: str
    """The thread that was copied."""
    seen: str
    """Of what was asked: the digest of what the question shows."""
    policy: str
    """Of what was asked: who may answer, and how many must, in words."""
    record: str = field(repr=False)
    """The entry as it is stored, a JSON object; its "previous" is the digest of the entry before."""
    digest: str = field(repr=False)
    """SHA-256 of the record, in hex."""


def read_entry(entry: interrupt_pb2.TrailEntry) -> TrailEntry:
    """An entry of the server."""
    return TrailEntry(
        number=entry.number,
        time=read_time(entry, "time"),
        kind=read_word(interrupt_pb2.TrailKind, entry.kind, "TRAIL_KIND_"),
        principal=entry.principal,
        note=entry.note,
        value=read_value(entry, "value"),
        value_digest=entry.value_digest,
        agrees=entry.agrees,
        dismissed=entry.dismissed,
        users=tuple(entry.users),
        groups=tuple(entry.groups),
        priority=entry.priority,
        fields=tuple(entry.fields),
        assignees=tuple(entry.assignees),
        until=read_time(entry, "until"),
        from_thread_id=public_thread(entry.from_thread_id),
        seen=entry.seen,
        policy=entry.policy,
        record=entry.record,
        digest=entry.digest,
    )


__all__ = ["TrailEntry", "read_entry"]
