"""The values that a program and the graph exchange, shaped as in LangGraph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from graphd.parts import (
    CheckpointPayload,
    CheckpointStreamPart,
    CheckpointTask,
    CustomStreamPart,
    DebugPayload,
    DebugStreamPart,
    MessagesStreamPart,
    StreamPart,
    TaskPayload,
    TaskResultPayload,
    TasksStreamPart,
    UpdatesStreamPart,
    ValuesStreamPart,
)
from graphd.runtime.ask import interrupt
from graphd.runtime.policies import default_cache_key, default_retry_on

All = Literal["*"]
StreamMode = Literal["values", "updates", "checkpoints", "tasks", "debug", "messages", "custom"]
StreamWriter = Callable[[Any], None]
Durability = Literal["sync", "async", "exit"]
Checkpointer = Any
N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True)
class Interrupt:
    """One question to a person, and the id to answer it by."""

    value: Any
    id: str = "placeholder-id"

    @property
    def interrupt_id(self) -> str:
        """The id, under its older name."""
        return self.id


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


class Send:
    """Runs a node with an input of its own."""

    __slots__ = ("arg", "node", "timeout")

    def __init__(self, /, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node, self.arg, self.timeout = node, arg, timeout

    def __repr__(self) -> str:
        return f"Send(node={self.node!r}, arg={self.arg!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Send) and (self.node, self.arg) == (other.node, other.arg)

    def __hash__(self) -> int:
        return hash((self.node, repr(self.arg)))


@dataclass(frozen=True, kw_only=True)
class Command(Generic[N]):
    """Changes the state, goes somewhere, or answers questions."""

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    graph: str | None = None
    update: Any | None = None
    resume: Any | None = None
    goto: Send | Sequence[Send | N] | N = ()

    def __repr__(self) -> str:
        given = ", ".join(f"{f.name}={v!r}" for f in fields(self) if (v := getattr(self, f.name)) not in (None, ()))
        return f"Command({given})"


class RetryPolicy(NamedTuple):
    """When and how often a failed node is tried again."""

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on


@dataclass(frozen=True, kw_only=True)
class CachePolicy:
    """Which runs of a node count as the same, and for how many seconds."""

    key_func: Callable[..., str | bytes] = default_cache_key
    ttl: int | None = None


@dataclass
class Overwrite:
    """Replaces the value of a key instead of combining it."""

    value: Any
    type: Literal["__overwrite__"] = field(default="__overwrite__")


class StateUpdate(NamedTuple):
    """One write of ``bulk_update_state``."""

    values: dict[str, Any] | None
    as_node: str | None = None
    task_id: str | None = None


class PregelTask(NamedTuple):
    """One task of a superstep, as far as it has come."""

    id: str
    name: str
    path: tuple[Any, ...]
    error: BaseException | None = None
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any | None = None


class StateSnapshot(NamedTuple):
    """The state of a thread at one checkpoint."""

    values: dict[str, Any] | Any
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: dict[str, Any] | None
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, kw_only=True)
class TracePolicy:
    """What of a node a tracer may see; graphd itself traces no values."""

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None


@dataclass
class GraphOutput:
    """Result of ``invoke(version="v2")``: the state and the open questions."""

    value: Any
    interrupts: tuple[Interrupt, ...] = ()


__all__ = [
    "All",
    "CachePolicy",
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "Checkpointer",
    "Command",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "MessagesStreamPart",
    "Overwrite",
    "PregelTask",
    "RetryPolicy",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "TimeoutPolicy",
    "TracePolicy",
    "UpdatesStreamPart",
    "ValuesStreamPart",
    "interrupt",
]
