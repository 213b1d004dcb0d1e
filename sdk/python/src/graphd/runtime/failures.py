"""The exceptions of failures: what a caller catches, and what an error handler gets."""

from __future__ import annotations

import re

from graphd._gen.v1 import payload_pb2
from graphd.constants import START
from graphd.errors import (
    ErrorCode,
    GraphdError,
    GraphRecursionError,
    InvalidUpdateError,
    LimitExceededError,
    NodeTimeoutError,
    NonDeterministicNode,
    with_code,
)
from graphd.names import public_name
from graphd.runtime.failed_node import restore_error


class RefusedUpdateError(InvalidUpdateError, ValueError):
    """The server could not combine what a node wrote with the state."""

    def __repr__(self) -> str:
        return f"InvalidUpdateError({str(self)!r})"


class RunFailed(GraphdError):
    """The run failed for a reason that has no exception of its own."""


class RunBeyondLimit(RunFailed, LimitExceededError):
    """The run failed because a limit was exceeded."""


GENERIC = (
    "CANCELLED_BY_CLIENT",
    "SIBLING_FAILED",
    "ENDPOINT_NOT_ALLOWED",
    "INTERRUPT_EXPIRED",
    "GRAPH_VERSION_UNAVAILABLE",
    "NODE_NOT_FOUND",
    "CHECKPOINT_CONFLICT",
    "INTERNAL",
)
"""The reasons of failed runs without an exception of their own."""


def node_error(failure: payload_pb2.Failure, thread: str = "") -> BaseException:
    """The exception of a failure."""
    match failure.reason:
        case "STEP_LIMIT_EXCEEDED":
            limit = failure.details.get("limit", "")
            told = (
                f"Recursion limit of {limit} reached without hitting a stop condition. "
                "You can increase the limit by setting the `recursion_limit` config key."
            )
            text = told if limit else failure.message
            return GraphRecursionError(with_code(text, ErrorCode.GRAPH_RECURSION_LIMIT))
        case "INVALID_NODE_UPDATE":
            return RefusedUpdateError(_with_update_code(failure))
        case "UNKNOWN_TARGET_NODE":
            return InvalidUpdateError(failure.message)
        case "NODE_TIMEOUT":
            return _timeout_error(failure)
        case "STEP_TIMEOUT" | "RUN_TIMEOUT":
            return TimeoutError(failure.message)
        case "NON_DETERMINISTIC_NODE":
            return NonDeterministicNode(_describe_place(failure, thread) + failure.message)
        case "NODE_FAILED":
            return restore_error(failure)
        case "LIMIT_EXCEEDED" | "OUTPUT_TOO_LARGE":
            return RunBeyondLimit(
                _describe_writers(failure) + failure.message, reason=failure.reason, metadata=dict(failure.details)
            )
    return RunFailed(failure.message, reason=failure.reason, metadata=dict(failure.details))


def _describe_place(failure: payload_pb2.Failure, thread: str) -> str:
    """Names the node and the thread of a failure, as far as they are known."""
    where = f" of thread {thread!r}" if thread else ""
    return f"node {public_name(failure.node)!r}{where}: " if failure.node else ""


def _describe_writers(failure: payload_pb2.Failure) -> str:
    """Names whose value was refused, as far as it is known: the nodes of one superstep, or the input."""
    if failure.node == START:
        return "the input: "
    names = [repr(public_name(name)) for name in failure.node.split(", ") if name]
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names)}: " if names else ""


def _timeout_error(failure: payload_pb2.Failure) -> NodeTimeoutError:
    limit = seconds_of(failure.details.get("timeout", ""))
    if "idle" in failure.message:
        return NodeTimeoutError(public_name(failure.node), limit, kind="idle", idle_timeout=limit)
    return NodeTimeoutError(public_name(failure.node), limit, kind="run", run_timeout=limit)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def seconds_of(text: str) -> float:
    """A duration as the server writes it, such as 1m0.5s or 50ms."""
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"([0-9.]+)(h|ms|m|µs|ns|s)", text))


def _with_update_code(failure: payload_pb2.Failure) -> str:
    message = _describe_writers(failure) + failure.message
    if any(code.value in message for code in ErrorCode):
        return message
    if failure.type == "InvalidResult":  # of itself, whatever else was written
        return with_code(message, ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE)
    if "in one superstep" in message:
        return with_code(message, ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE)
    return message
