"""How long a server may stay away."""

from __future__ import annotations

import logging
import time

from graphd.errors import GraphdError, TLSError

_log = logging.getLogger("graphd.client")

_LIMIT = 30.0  # seconds
UNOPENED = 5.0  # seconds that a server may be away before it has answered at all
_FIRST, _LONGEST = 0.05, 2.0

# What passes by itself: the call is made again, with the same request id.
_RETRYABLE = {
    "SERVER_DRAINING",
    "SLOW_CONSUMER",
    "STORE_UNAVAILABLE",
    "STORE_BUSY",
    "OUTCOME_UNKNOWN",
    "TOO_MANY_RUNS",
    "TOO_MANY_SUBSCRIBERS",
    "TOO_MANY_REQUESTS",
    "KEYS_UNAVAILABLE",
}
# What needs an operator or a decision of the caller, who is told at once.
_NOT_RETRYABLE = {
    "STORE_FULL",
    "THREAD_QUEUE_FULL",
    "RATE_LIMITED",
    "QUOTA_EXCEEDED",
    "TOO_MANY_GRAPHS",
    "TOO_MANY_ASSISTANTS",
    "TOO_MANY_ITEMS",
    "TOO_MANY_CRONS",
    "ITEM_SEARCH_TOO_BROAD",
    "NO_WORKER_AVAILABLE",
    "WORKER_SILENT",
}


class Backoff:
    """Spaces attempts, and ends them when none has helped for a while."""

    def __init__(self) -> None:
        self._pause, self._since = _FIRST, 0.0

    def reset(self) -> None:
        """Something came; the next problem is a new one."""
        self._pause, self._since = _FIRST, 0.0

    def next_pause(self, problem: GraphdError, limit: float = _LIMIT) -> float:
        """Seconds to wait before the next attempt; raises the problem when there
        have been enough."""
        now = time.monotonic()
        self._since = self._since or now
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        if problem.code == "RESOURCE_EXHAUSTED":  # this server is busy; of others one may answer at once
            pause = min(max(pause, problem.retry_delay or 0.0), _LONGEST)
        left = self._since + limit - now
        if left <= 0:
            raise problem
        pause = min(pause, left)  # the last attempt is at the limit
        if problem.code == "RESOURCE_EXHAUSTED":
            asked = "none" if problem.retry_delay is None else f"{problem.retry_delay:g} s"
            _log.info(
                "the server is full (%s): the call is made again in %.2g s; delay that the server asks for: %s; %s",
                problem.reason,
                pause,
                asked,
                problem,
            )
        return pause


def is_transient(problem: GraphdError) -> bool:
    """Whether another server, or the same one later, may answer what can be repeated."""
    if isinstance(problem, TLSError):
        return False
    return problem.reason in _RETRYABLE or (problem.code == "UNAVAILABLE" and not problem.reason)
