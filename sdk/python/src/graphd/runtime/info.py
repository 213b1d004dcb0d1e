"""What a node can know about the run it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

ContextT = TypeVar("ContextT")


def _ignore_value(_: Any) -> None:
    return None


def _do_nothing() -> None:
    return None


@dataclass(frozen=True)
class ExecutionInfo:
    """Where the code runs."""

    checkpoint_id: str
    checkpoint_ns: str
    task_id: str
    thread_id: str | None = None
    run_id: str | None = None
    node_attempt: int = 1
    node_first_attempt_time: float | None = None

    def patch(self, **overrides: Any) -> ExecutionInfo:
        """A copy with other values."""
        return replace(self, **overrides)


class RunControl:
    """Lets a program ask its own run to stop between two supersteps."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._listeners: list[Callable[[str], None]] = []

    def request_drain(self, reason: str = "shutdown") -> None:
        """Asks the run to stop after the superstep that is under way."""
        self._reason = reason
        for listener in list(self._listeners):
            listener(reason)

    @property
    def drain_requested(self) -> bool:
        """A stop was asked for."""
        return self._reason is not None

    @property
    def drain_reason(self) -> str | None:
        """Why, None if it was not."""
        return self._reason

    def on_drain(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Calls the listener when a stop is asked for; returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


@dataclass(frozen=True, kw_only=True)
class Runtime(Generic[ContextT]):
    """Handed to nodes that have a parameter for it."""

    context: ContextT = None  # type: ignore[assignment]
    store: Any = None
    stream_writer: Callable[[Any], None] = field(default=_ignore_value)
    heartbeat: Callable[[], None] = field(default=_do_nothing)
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    server_info: Any = None
    control: RunControl | None = None

    @property
    def drain_requested(self) -> bool:
        """The run was asked to stop."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why, None if it was not."""
        return None if self.control is None else self.control.drain_reason

    def merge(self, other: Runtime[ContextT]) -> Runtime[ContextT]:
        """What the other one sets, and for the rest what this one has."""
        given = {f.name: getattr(other, f.name) for f in fields(other)}
        unset = (None, _ignore_value, _do_nothing)
        return replace(self, **{k: v for k, v in given.items() if not any(v is u for u in unset)})

    def patch_execution_info(self, **overrides: Any) -> Runtime[ContextT]:
        """A copy that says otherwise where the code runs."""
        if self.execution_info is None:
            raise RuntimeError("there is no execution info outside of a run")
        return replace(self, execution_info=self.execution_info.patch(**overrides))

    def override(self, **overrides: Any) -> Runtime[ContextT]:
        """A copy with other values."""
        return replace(self, **overrides)
