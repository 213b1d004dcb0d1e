"""Errors of calls as exceptions."""

from __future__ import annotations

from typing import Any

import grpc

from graphd._gen.client import status_pb2 as pb
from graphd.errors import (
    AmbiguousResumeError,
    EmptyInputError,
    GraphdError,
    InvalidGraphError,
    InvalidUpdateError,
    NothingToResumeError,
    ServerUnavailableError,
    ThreadBusyError,
)

_CLASSES: dict[str, type[GraphdError]] = {
    "INVALID_GRAPH": InvalidGraphError,
    "THREAD_BUSY": ThreadBusyError,
    "THREAD_NOT_INTERRUPTED": NothingToResumeError,
    "INTERRUPT_ALREADY_RESOLVED": NothingToResumeError,
    "RESPONSE_AMBIGUOUS": AmbiguousResumeError,
    "NO_WORKER_AVAILABLE": ServerUnavailableError,
    "SERVER_DRAINING": ServerUnavailableError,
}


class EmptyInput(GraphdError, EmptyInputError):
    """NOTHING_TO_DO, as the exception that LangGraph programs expect."""


class InvalidUpdate(GraphdError, InvalidUpdateError):
    """An update the server refused, as the exception LangGraph programs expect."""


_CLASSES |= {
    "NOTHING_TO_DO": EmptyInput,
    "AMBIGUOUS_NODE": InvalidUpdate,
    "NODE_NOT_FOUND": InvalidUpdate,
}


def describe(error: grpc.RpcError) -> GraphdError:
    """The error of a call with its reason, metadata and field violations."""
    code = error.code().name
    text = error.details() or code
    reason = ""
    metadata: dict[str, str] = {}
    violations: dict[str, str] = {}
    trailer: Any = error.trailing_metadata() or ()
    for key, value in trailer:
        if key != "grpc-status-details-bin":
            continue
        for detail in pb.Status.FromString(value).details:
            name = detail.type_url.rsplit("/", 1)[-1]
            if name == "google.rpc.ErrorInfo":
                info = pb.ErrorInfo.FromString(detail.value)
                reason, metadata = info.reason, dict(info.metadata)
            elif name == "google.rpc.BadRequest":
                request = pb.BadRequest.FromString(detail.value)
                violations = {v.field: v.description for v in request.field_violations}
    if violations and not any(v in text for v in violations.values()):
        text += ": " + "; ".join(f"{field}: {said}" for field, said in violations.items())
    if (open_ids := metadata.get("openInterruptIds")) and open_ids not in text:
        text += f" (open: {', '.join(open_ids.split(','))})"
    kind = _CLASSES.get(reason, ServerUnavailableError if code == "UNAVAILABLE" else GraphdError)
    return kind(text, reason=reason, code=code, metadata=metadata, violations=violations)


def reason_of(error: BaseException | None) -> str:
    """The reason of an error, "" when it has none."""
    return error.reason if isinstance(error, GraphdError) else ""
