"""What streams yield: the parts of ``version="v2"``, and what is in them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from graphd.values.command import Interrupt


class TaskPayload(TypedDict):
    """A task that begins."""

    id: str
    name: str
    input: Any
    triggers: list[str]


class TaskResultPayload(TypedDict):
    """A task that has ended."""

    id: str
    name: str
    error: str | None
    interrupts: list[dict[str, Any]]
    result: dict[str, Any]


class _TaskProgress(TypedDict, total=False):
    error: str
    result: Any
    interrupts: list[dict[str, Any]]


class CheckpointTask(_TaskProgress):
    """A task that is due at a checkpoint, as far as it has come."""

    id: str
    name: str
    state: Any


class CheckpointPayload(TypedDict):
    """A checkpoint that was stored."""

    config: dict[str, Any] | None
    metadata: dict[str, Any]
    values: Any
    next: list[str]
    parent_config: dict[str, Any] | None
    tasks: list[CheckpointTask]


class DebugPayload(TypedDict):
    """One of the others, with its step and time."""

    step: int
    timestamp: str
    type: Literal["checkpoint", "task", "task_result"]
    payload: CheckpointPayload | TaskPayload | TaskResultPayload


class ValuesStreamPart(TypedDict):
    """The state after a superstep, and the questions that are open."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: Any
    interrupts: tuple[Interrupt, ...]


class UpdatesStreamPart(TypedDict):
    """What nodes have written."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """A message, or a piece of one, and where it comes from."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """What a node has sent with its stream writer."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any


class CheckpointStreamPart(TypedDict):
    """A checkpoint."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload


class TasksStreamPart(TypedDict):
    """A task that begins or has ended."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class DebugStreamPart(TypedDict):
    """Checkpoints and tasks, with steps and times."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload


StreamPart = (
    ValuesStreamPart
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | CheckpointStreamPart
    | TasksStreamPart
    | DebugStreamPart
)
