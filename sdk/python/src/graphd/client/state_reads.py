"""Reads states, key by key where a whole one is too large for a message."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from graphd._gen.v1 import payload_pb2, thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.constants import ROOT
from graphd.declare.program import Program
from graphd.errors import AccessDeniedError, LimitExceededError, OmittedValue
from graphd.transport.server import retry_read

T = TypeVar("T")
_ATTEMPTS = 5  # to read all keys while the thread does not change


def read_state(
    threads: Any, program: Program | None, request: ts.GetStateRequest, *, opened: bool = True
) -> thread_pb2.StateSnapshot:
    """The answer of GetState. A state that is too large for one message is put together from its keys.

    Raises LimitExceededError when that does not help: the value of one key is too large as well.
    """
    try:
        state: thread_pb2.StateSnapshot = retry_read(threads.GetState, request, opened=opened)
        return state
    except LimitExceededError as refusal:
        if program is None or program.is_root or request.subgraphs:
            raise
        keys = [key for key in program.channels if key != ROOT]
        for _ in range(_ATTEMPTS):
            parts = [_read_key(threads, request, key) for key in keys]
            if parts and all(part.applied_through == parts[0].applied_through for part in parts):
                parts[0].values.CopyFrom(_join_values(parts))
                return parts[0]
        raise refusal


def read_permitted(thread: str, read: Callable[[], T]) -> T | None:
    """What read returns. None, with a warning, for a caller that may not read the state of the thread.

    The run has gone on by then: an exception would say that it has not.
    """
    try:
        return read()
    except AccessDeniedError:
        text = f"the state of thread {thread!r} is left out: the caller may answer, and may not read states"
        warnings.warn(text, OmittedValue, stacklevel=2)
        return None


def _read_key(threads: Any, whole: ts.GetStateRequest, key: str) -> thread_pb2.StateSnapshot:
    request = ts.GetStateRequest(thread_id=whole.thread_id, keys=[key])
    if whole.HasField("at"):
        request.at.CopyFrom(whole.at)
    part: thread_pb2.StateSnapshot = retry_read(threads.GetState, request)
    return part


def _join_values(parts: Sequence[thread_pb2.StateSnapshot]) -> payload_pb2.Payload:
    """One JSON object of all. Its text is joined, so that numbers stay as they are."""
    members = [part.values.json.strip()[1:-1].strip() for part in parts]
    return payload_pb2.Payload(json="{" + ",".join(m for m in members if m) + "}")
