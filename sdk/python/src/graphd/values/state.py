"""States as programs read and write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from graphd.values.command import Interrupt


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


@dataclass
class GraphOutput:
    """Result of ``invoke(version="v2")``: the state and the open questions."""

    value: Any
    interrupts: tuple[Interrupt, ...] = ()
