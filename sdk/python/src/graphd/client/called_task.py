"""What a worker tells of the tasks that the code of a node calls."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2, payload_pb2
from graphd.client.failures import stored_error
from graphd.constants import NAMESPACE_SEPARATOR, TASK_SEPARATOR
from graphd.errors import OmittedValue

_PUSH = "__pregel_push"
_RETURN = "__return__"


@dataclass(frozen=True)
class CalledTask:
    """One thing that happened to a task; see graphd.func.task_events."""

    phase: str
    identifier: str
    name: str
    input: tuple[Any, Any] | None
    result: Any
    error: BaseException | None
    is_cached: bool
    is_omitted: bool
    """The result is larger than an event may be."""

    @classmethod
    def of(cls, event: event_pb2.Event) -> CalledTask:
        """Reads an event; what it does not tell is left out."""
        told = codec.value_of(event.custom.value)
        told = told if isinstance(told, Mapping) else {}
        given, failure = told.get("input"), told.get("error")
        return cls(
            phase=str(told.get("phase")),
            identifier=str(told.get("id")),
            name=str(told.get("name")),
            input=(tuple(given[0]), given[1]) if given else None,
            result=told.get("result"),
            error=_read_error(failure) if failure else None,
            is_cached=bool(told.get("cached")),
            is_omitted=bool(told.get("omitted")),
        )

    @property
    def is_ended(self) -> bool:
        """It has a result."""
        return self.phase == "ended"

    def warn_omitted(self) -> None:
        """Warns that the result is not shown."""
        text = f"the result of task {self.name!r} is left out: it is larger than an event may be"
        warnings.warn(text, OmittedValue, stacklevel=2)

    def build_update(self) -> dict[str, Any]:
        """The item of the "updates" stream."""
        return {self.name: self.result} | ({"__metadata__": {"cached": True}} if self.is_cached else {})

    def build_trace(self) -> tuple[str, dict[str, Any]] | None:
        """The kind and the data of the item of the "tasks" stream, None for what it does not show."""
        base = {"id": self.identifier, "name": self.name}
        if self.phase == "begun":
            return "task", base | {"input": self.input, "triggers": (_PUSH,)}
        if self.is_cached:
            return None
        result = {_RETURN: self.result} if self.is_ended else {}
        return "task_result", base | {"error": self.error, "result": result, "interrupts": []}

    def build_metadata(self, around: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata of messages that the task returned, in a node with this metadata."""
        level = f"{self.name}{TASK_SEPARATOR}{self.identifier}"
        return {
            "langgraph_node": self.name,
            "langgraph_triggers": (_PUSH,),
            "langgraph_checkpoint_ns": f"{around['langgraph_checkpoint_ns']}{NAMESPACE_SEPARATOR}{level}",
        }


def _read_error(failure: Mapping[str, Any]) -> BaseException | None:
    told = payload_pb2.Failure(reason="NODE_FAILED", type=str(failure["type"]), message=str(failure["message"]))
    return stored_error(told)


__all__ = ["CalledTask"]
