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
    LimitExceededError,
    NothingToResumeError,
    OutcomeUnknownError,
    ServerBusyError,
    ServerUnavailableError,
    StoreFullError,
    StoreReplacedError,
    ThreadBusyError,
)


class EmptyInput(GraphdError, EmptyInputError):
    """NOTHING_TO_DO, as the exception that LangGraph programs expect."""


class InvalidUpdate(GraphdError, InvalidUpdateError):
    """An update the server refused, as the exception LangGraph programs expect."""


_BY_CLASS: dict[type[GraphdError], tuple[str, ...]] = {
    InvalidGraphError: ("INVALID_GRAPH",),
    ThreadBusyError: ("THREAD_BUSY",),
    NothingToResumeError: ("THREAD_NOT_INTERRUPTED", "INTERRUPT_ALREADY_RESOLVED"),
    AmbiguousResumeError: ("RESPONSE_AMBIGUOUS",),
    EmptyInput: ("NOTHING_TO_DO",),
    InvalidUpdate: ("AMBIGUOUS_NODE", "NODE_NOT_FOUND"),
    LimitExceededError: ("PAYLOAD_TOO_LARGE", "SCHEMA_LIMIT_EXCEEDED", "CHANGE_TOO_LARGE", "TOO_MANY_GRAPHS"),
    ServerBusyError: (
        "TOO_MANY_RUNS",
        "TOO_MANY_SUBSCRIBERS",
        "TOO_MANY_REQUESTS",
        "THREAD_QUEUE_FULL",
        "RATE_LIMITED",
        "SLOW_CONSUMER",
    ),
    StoreFullError: ("STORE_FULL",),
    StoreReplacedError: ("STORE_REPLACED",),
    OutcomeUnknownError: ("OUTCOME_UNKNOWN",),
    ServerUnavailableError: (
        "STORE_UNAVAILABLE",
        "STORE_BUSY",
        "SERVER_DRAINING",
        "NO_WORKER_AVAILABLE",
        "WORKER_SILENT",
        "KEYS_UNAVAILABLE",
    ),
    # A caller who wants to tell these apart branches on the reason.
    GraphdError: (
        "INVALID_FIELD",
        "INVALID_PAYLOAD_JSON",
        "INPUT_SCHEMA_MISMATCH",
        "RESPONSE_SCHEMA_MISMATCH",
        "INVALID_PAGE_TOKEN",
        "INVALID_CURSOR",
        "THREAD_NOT_FOUND",
        "RUN_NOT_FOUND",
        "GRAPH_NOT_FOUND",
        "CHECKPOINT_NOT_FOUND",
        "INTERRUPT_NOT_FOUND",
        "THREAD_EXISTS",
        "RUN_EXISTS",
        "GRAPH_EXISTS",
        "REQUEST_ID_CONFLICT",
        "THREAD_INTERRUPTED",
        "INTERRUPT_EXPIRED",
        "RESPONSES_INCOMPLETE",
        "RUN_NOT_CANCELLABLE",
        "GRAPH_VERSION_UNAVAILABLE",
        "GRAPH_IN_USE",
        "TASK_LEASE_LOST",
        "PROTOCOL_MISMATCH",
        "ETAG_MISMATCH",
        "CHECKPOINT_CONFLICT",
        "WORKER_REPLACED",
        "CURSOR_TRIMMED",
        "CURSOR_AHEAD",
        "CURSOR_LOST",
        "ACCESS_DENIED",
        "NO_CREDENTIALS",
        "CERTIFICATE_UNMAPPED",
        "TOKEN_INVALID",
        "TOKEN_EXPIRED",
        "TOKEN_NOT_YET_VALID",
        "TOKEN_AUDIENCE",
        "TOKEN_ISSUER",
        "TOKEN_ALGORITHM",
        "TOKEN_SIGNATURE",
        "TOKEN_MALFORMED",
        "TOKEN_TOO_LARGE",
        "TOKEN_REVOKED",
        "TOKEN_CLAIM",
        "TOKEN_UNKNOWN",
        "FEATURE_DISABLED",
        "WAIT_TIMEOUT",
        "DEADLINE_EXCEEDED",
        "CANCELLED",
        "CHECKPOINT_CORRUPT",
        "INTERNAL",
    ),
}
CLASSES = {reason: kind for kind, reasons in _BY_CLASS.items() for reason in reasons}
"""The exception of every reason of the server's table."""


def to_graphd_error(error: grpc.RpcError) -> GraphdError:
    """The error of a call with its reason, metadata and field violations."""
    code = error.code().name
    text = error.details() or code
    reason = ""
    metadata: dict[str, str] = {}
    violations: dict[str, str] = {}
    delay: float | None = None
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
            elif name == "google.rpc.RetryInfo":
                delay = pb.RetryInfo.FromString(detail.value).retry_delay.ToTimedelta().total_seconds()
    if violations and not any(v in text for v in violations.values()):
        text += ": " + "; ".join(f"{field}: {said}" for field, said in violations.items())
    if (open_ids := metadata.get("openInterruptIds")) and open_ids not in text:
        text += f" (open: {', '.join(open_ids.split(','))})"
    kind = CLASSES.get(reason, ServerUnavailableError if code == "UNAVAILABLE" else GraphdError)
    return kind(text, reason=reason, code=code, metadata=metadata, violations=violations, retry_delay=delay)


def reason_of(error: BaseException | None) -> str:
    """The reason of an error, "" when it has none."""
    return error.reason if isinstance(error, GraphdError) else ""
