"""Errors of calls as exceptions."""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc

from graphd._gen.client import status_pb2 as pb
from graphd.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    AmbiguousResumeError,
    CallTimeoutError,
    ConflictError,
    EmptyInputError,
    GraphdError,
    InterruptNotFoundError,
    InvalidGraphError,
    InvalidResumeError,
    InvalidUpdateError,
    LimitExceededError,
    NotFoundError,
    NothingToResumeError,
    OpenQuestionsError,
    OutcomeUnknownError,
    ServerBusyError,
    ServerUnavailableError,
    StoreFullError,
    StoreReplacedError,
    ThreadBusyError,
    TLSError,
    UnauthenticatedError,
    UnknownInterruptError,
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
    UnknownInterruptError: ("INTERRUPT_EXPIRED",),
    InterruptNotFoundError: ("INTERRUPT_NOT_FOUND",),
    InvalidResumeError: ("RESPONSE_SCHEMA_MISMATCH",),
    EmptyInput: ("NOTHING_TO_DO",),
    InvalidUpdate: ("AMBIGUOUS_NODE", "NODE_NOT_FOUND"),
    LimitExceededError: (
        "PAYLOAD_TOO_LARGE",
        "SCHEMA_LIMIT_EXCEEDED",
        "CHANGE_TOO_LARGE",
        "TOO_MANY_GRAPHS",
        "TOO_MANY_ASSISTANTS",
        "TOO_MANY_ITEMS",
        "TOO_MANY_CRONS",
        "ITEM_SEARCH_TOO_BROAD",
    ),
    ServerBusyError: (
        "TOO_MANY_RUNS",
        "TOO_MANY_SUBSCRIBERS",
        "TOO_MANY_REQUESTS",
        "THREAD_QUEUE_FULL",
        "RATE_LIMITED",
        "QUOTA_EXCEEDED",
        "SLOW_CONSUMER",
    ),
    UnauthenticatedError: (
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
        "SESSION_EXPIRED",
        "SESSION_INVALID",
        "PROXY_UNTRUSTED",
        "PROXY_HEADER_INVALID",
    ),
    AccessDeniedError: ("ACCESS_DENIED",),
    StoreFullError: ("STORE_FULL",),
    StoreReplacedError: ("STORE_REPLACED",),
    OutcomeUnknownError: ("OUTCOME_UNKNOWN",),
    NotFoundError: (
        "THREAD_NOT_FOUND",
        "RUN_NOT_FOUND",
        "GRAPH_NOT_FOUND",
        "CHECKPOINT_NOT_FOUND",
        "ASSISTANT_NOT_FOUND",
        "ITEM_NOT_FOUND",
        "CRON_NOT_FOUND",
    ),
    AlreadyExistsError: ("THREAD_EXISTS", "RUN_EXISTS", "GRAPH_EXISTS", "ASSISTANT_EXISTS", "CRON_EXISTS"),
    ConflictError: ("ETAG_MISMATCH", "CHECKPOINT_CONFLICT", "QUESTION_CHANGED", "COUNT_CHANGED"),
    OpenQuestionsError: ("THREAD_INTERRUPTED",),
    CallTimeoutError: ("WAIT_TIMEOUT", "DEADLINE_EXCEEDED"),
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
        "INVALID_PAGE_TOKEN",
        "INVALID_CURSOR",
        "REQUEST_ID_CONFLICT",
        "RESPONSES_INCOMPLETE",
        "INTERRUPT_CLAIMED",
        "RESPONSE_IN_EFFECT",
        "TRAIL_FULL",
        "LINKS_NOT_CONFIGURED",
        "RUN_NOT_CANCELLABLE",
        "GRAPH_VERSION_UNAVAILABLE",
        "GRAPH_IN_USE",
        "TASK_LEASE_LOST",
        "PROTOCOL_MISMATCH",
        "WORKER_ID_TAKEN",
        "WORKER_REPLACED",
        "CURSOR_TRIMMED",
        "CURSOR_AHEAD",
        "CURSOR_LOST",
        "FEATURE_DISABLED",
        "CANCELLED",
        "CHECKPOINT_CORRUPT",
        "INTERNAL",
    ),
}
CLASSES = {reason: kind for kind, reasons in _BY_CLASS.items() for reason in reasons}
"""The exception of every reason of the server's table."""

_BY_CODE: dict[str, type[GraphdError]] = {
    "UNAVAILABLE": ServerUnavailableError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "PERMISSION_DENIED": AccessDeniedError,
    "DEADLINE_EXCEEDED": CallTimeoutError,
}
"""The exceptions of other reasons, and of none."""


class _Cause(NamedTuple):
    words: str  # of gRPC, in the text of a connection that could not be made
    remedy: str
    is_certain: bool = True  # it is TLS, and does not pass by itself


_NAME = "call the server by a name or an address of its certificate, or make it one with this name"
_OWN = (
    "the server refuses this client's certificate, or the lack of one: "
    "give one of its --tls-client-ca with cert=FILE and key=FILE (GRAPHD_TLS_CERT and GRAPHD_TLS_KEY)"
)
_CAUSES = (
    _Cause(
        "WRONG_VERSION_NUMBER",
        "the server does not serve TLS at this address: leave out tls, ca, cert and key (GRAPHD_TLS and so on), "
        "or start it with --tls-cert and --tls-key",
    ),
    _Cause("certificate has expired", "the server needs a new certificate; check the clocks, too"),
    _Cause("certificate is not yet valid", "the server needs a new certificate; check the clocks, too"),
    _Cause(
        "CERTIFICATE_VERIFY_FAILED",
        "the server's certificate is of another CA: name the file of its CA with ca=FILE (GRAPHD_TLS_CA), "
        "or give tls=True (GRAPHD_TLS) alone when its CA is one of the system",
    ),
    _Cause("Hostname Verification Check failed", _NAME),
    _Cause("is not in peer certificate", _NAME),
    _Cause("Unwrap failed", _OWN),
    _Cause("SSLV3_ALERT", _OWN),
    _Cause("TLSV1_ALERT", _OWN),
    _Cause(
        "Socket closed",
        "when the server serves TLS, name its CA with ca=FILE (GRAPHD_TLS_CA), "
        "or give tls=True (GRAPHD_TLS) when its CA is one of the system",
        is_certain=False,
    ),
)
"""Causes and remedies. The first that fits counts."""


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
    if reason == "THREAD_BUSY":
        text += ". In Python: invoke(None, …) waits for that run; Client().runs.wait, .cancel, or .start with "
        text += "RunOptions(when_busy=…)"
    kind = CLASSES.get(reason) or _BY_CODE.get(code, GraphdError)
    if reason == "INVALID_FIELD" and "run.graph" in violations and "graph" in metadata:
        kind = AlreadyExistsError  # the thread is of another graph; the server has no reason of its own for it
    if code == "UNAVAILABLE" and not reason and (cause := _find_cause(text)) is not None:
        text += f"; {cause.remedy}"
        kind = TLSError if cause.is_certain else kind
    return kind(text, reason=reason, code=code, metadata=metadata, violations=violations, retry_delay=delay)


def _find_cause(text: str) -> _Cause | None:
    """Why a connection could not be made, as far as TLS may be the cause."""
    if "failed to connect to all addresses" not in text:
        return None
    return next((cause for cause in _CAUSES if cause.words in text), None)


def reason_of(error: BaseException | None) -> str:
    """The reason of an error, "" when it has none."""
    return error.server_reason if isinstance(error, GraphdError) else ""
