"""Tells the watchers of a run what becomes of the tasks that code calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd.errors import GraphBubbleUp
from graphd.runtime import exception_text
from graphd.runtime.task import Host


@dataclass(frozen=True)
class TaskEvents:
    """The events of one call. Those of its end are kept in the log of the thread."""

    host: Host
    identifier: str
    name: str

    def report_begin(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """The task begins, or was found to have ended."""
        given = codec.Tagged([list(args), dict(kwargs)])
        try:
            self._send("begun", {"input": given}, durable=False)
        except (TypeError, ValueError):  # arguments without a JSON form, such as clients
            self._send("begun", {}, durable=False)

    def report_end(self, recorded: Any, *, is_cached: bool) -> None:
        """The task has a result."""
        about = {"cached": True} if is_cached else {}
        try:
            self._send("ended", about | {"result": codec.Tagged(recorded)}, durable=True)
        except ValueError:  # larger than an event may be
            self._send("ended", about | {"omitted": True}, durable=True)

    def report_failure(self, error: Exception) -> None:
        """The task has raised something; one that asks has not ended."""
        if not isinstance(error, GraphBubbleUp):
            raised = {"type": exception_text.kind_of(error), "message": exception_text.text_of(error)}
            self._send("failed", {"error": raised}, durable=True)

    def _send(self, phase: str, about: dict[str, Any], *, durable: bool) -> None:
        self.host.emit_task_event({"phase": phase, "id": self.identifier, "name": self.name} | about, durable)


__all__ = ["TaskEvents"]
