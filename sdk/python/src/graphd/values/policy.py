"""How nodes are run: tried again, cut off, remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple

_PERMANENT = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)


def default_retry_on(error: Exception) -> bool:
    """Retries trouble of the network and of servers, not mistakes of the code."""
    if isinstance(error, ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return 500 <= status < 600
    return not isinstance(error, _PERMANENT)


def default_cache_key(*args: Any, **kwargs: Any) -> str:
    """Digests the arguments of a node, whatever the order of their keys."""
    text = json.dumps([args, kwargs], sort_keys=True, default=repr, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class TimeoutPolicy:
    """How long a node may take, and how long it may stay silent, in seconds.

    A node that sends something, records a memo or calls ``heartbeat()`` is not
    silent, whatever ``refresh_on`` says.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"

    @classmethod
    def coerce(cls, value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """Reads a plain number as a limit for the run; ValueError unless positive."""
        policy = value if value is None or isinstance(value, TimeoutPolicy) else cls(run_timeout=value)
        if policy is None or (policy.run_timeout is None and policy.idle_timeout is None):
            return None
        for name in ("run_timeout", "idle_timeout"):
            given = getattr(policy, name)
            if given is not None and (given.total_seconds() if isinstance(given, timedelta) else given) <= 0:
                raise ValueError(f"{name} must be greater than 0")
        if policy.refresh_on not in ("auto", "heartbeat"):
            raise ValueError("refresh_on must be 'auto' or 'heartbeat'")
        return policy


class RetryPolicy(NamedTuple):
    """When and how often a failed node is tried again."""

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on

    def matches_error(self, error: BaseException) -> bool:
        """The policy says that this failure is worth another try."""
        if not isinstance(error, Exception):
            return False
        wanted = self.retry_on
        if isinstance(wanted, type):
            return isinstance(error, wanted)
        if callable(wanted):
            return bool(wanted(error))
        return isinstance(error, tuple(wanted))


@dataclass(frozen=True, kw_only=True)
class CachePolicy:
    """Which runs of a node count as the same, and for how many seconds."""

    key_func: Callable[..., str | bytes] = default_cache_key
    ttl: int | None = None


@dataclass(frozen=True, kw_only=True)
class TracePolicy:
    """What of a node a tracer may see; graphd itself traces no values."""

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None
