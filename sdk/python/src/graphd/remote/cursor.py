"""Positions in the log of a thread."""

from __future__ import annotations

from dataclasses import dataclass

from graphd._gen.v1 import payload_pb2


@dataclass(frozen=True)
class Cursor:
    """A position in the log of a thread, valid at every server of its store.

    A program that keeps its fields goes on after it in another process, with ``runs.watch(after=…)``.
    """

    log_id: str
    sequence: int
    mark: int = 0


def read_cursor(cursor: payload_pb2.Cursor) -> Cursor | None:
    """A cursor of the server; None when it is not set."""
    return Cursor(cursor.log_id, cursor.sequence, cursor.mark) if cursor.log_id else None


def write_cursor(cursor: Cursor) -> payload_pb2.Cursor:
    """A cursor as the server takes it."""
    return payload_pb2.Cursor(log_id=cursor.log_id, sequence=cursor.sequence, mark=cursor.mark)
