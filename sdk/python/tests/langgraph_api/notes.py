"""What a program sees of a server, in a form that is the same each time.

Ids become <kind:n> in the order in which they are met, times vanish, and only the fields stay that clients
rely on.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any

_METADATA = ("graph_id", "source", "step", "why", "user", "n", "deep", "extra", "team")
_MESSAGE = ("type", "content", "tool_calls", "tool_call_id", "id", "name")


class Notes:
    """The notes of one program."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._names: dict[str, dict[str, str]] = {}

    def note(self, what: str, value: Any) -> None:
        """Takes one note."""
        self.rows.append([what, value])

    async def note_stream(self, what: str, parts: AsyncIterator[Any]) -> None:
        """Notes the events of a stream by mode: the order within a mode counts, that between modes does not."""
        rows: dict[str, list[Any]] = {}
        async for part in parts:
            name = part.event.split("|")[0] + "|sub" * part.event.count("|")
            rows.setdefault(name, []).append(self._event(part.event, part.data))
        self.note(what, rows)

    def name(self, kind: str, value: Any) -> str | None:
        """The name of an id."""
        if value is None:
            return None
        known = self._names.setdefault(kind, {})
        return known.setdefault(str(value).replace("-", ""), f"<{kind}:{len(known) + 1}>")

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "type" in value and "content" in value:
                return self._message(value)
            return {k: self.value(v) for k, v in value.items()}
        return [self.value(v) for v in value] if isinstance(value, list) else value

    def values(self, values: Any) -> Any:
        """A state. An empty list may be shown or not."""
        if values is None:
            return {}
        if not isinstance(values, dict):
            return self.value(values)
        shown = {k: self.value(v) for k, v in values.items() if k not in ("__interrupt__", "__error__")}
        shown = {k: v for k, v in shown.items() if v not in ([], None)}
        if "__interrupt__" in values:
            asked = [self.interrupt(i) for i in values["__interrupt__"]]
            shown["__interrupt__"] = sorted(asked, key=lambda i: json.dumps(i["value"]))
        if "__error__" in values:
            shown["__error__"] = values["__error__"]
        return shown

    def questions(self, values: dict[str, Any]) -> Any:
        """Only the questions of a result: what a half-done superstep has written may be shown or not."""
        return self.values({"__interrupt__": values["__interrupt__"]})["__interrupt__"]

    def interrupt(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"id": self.name("interrupt", asked["id"]), "value": self.value(asked.get("value"))}

    def thread(self, thread: dict[str, Any]) -> dict[str, Any]:
        return {
            "thread_id": self.name("thread", thread["thread_id"]),
            "status": thread["status"],
            "values": self.values(thread.get("values")),
            "metadata": self._metadata(thread.get("metadata")),
            "interrupts": [[self.interrupt(i) for i in asked] for asked in (thread.get("interrupts") or {}).values()],
        }

    def waiting_thread(self, thread: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in self.thread(thread).items() if k != "values"}

    def state(self, state: dict[str, Any]) -> dict[str, Any]:
        metadata = self._metadata(state.get("metadata"))
        return {
            "values": self.values(state["values"]),
            "next": sorted(state["next"]),
            "tasks": sorted((self._task(t) for t in state["tasks"]), key=lambda t: t["name"]),
            "metadata": {k: v for k, v in metadata.items() if k in ("source", "step")},
            "checkpoint": self._checkpoint(state.get("checkpoint")),
            "parent": self._checkpoint(state.get("parent_checkpoint")),
            "interrupts": [self.interrupt(i) for i in state.get("interrupts") or []],
        }

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        shown = {k: message[k] for k in _MESSAGE if message.get(k) not in (None, [], "")}
        shown["content"] = message["content"]
        if "id" in shown:
            shown["id"] = self.name("message", shown["id"])
        return shown

    def _metadata(self, metadata: dict[str, Any] | None) -> dict[str, Any]:
        return {k: metadata[k] for k in _METADATA if metadata and k in metadata}

    def _checkpoint(self, checkpoint: dict[str, Any] | None) -> dict[str, Any] | None:
        if not checkpoint:
            return None
        name = self.name("checkpoint", checkpoint.get("checkpoint_id"))
        return {"checkpoint_id": name, "root": not checkpoint.get("checkpoint_ns")}

    def _task(self, task: dict[str, Any]) -> dict[str, Any]:
        inner = task["state"] if isinstance(task.get("state"), dict) and "values" in task["state"] else None
        return {
            "name": task["name"],
            "id": self.name("task", task["id"]),
            "error": bool(task.get("error")),
            "interrupts": [self.interrupt(i) for i in task.get("interrupts") or []],
            "result": self.values(task["result"]) if task.get("result") is not None else None,
            "state": self.state(inner) if inner else None,
        }

    def _event(self, event: str, data: Any) -> Any:
        match event.split("|")[0]:
            case "metadata":
                return {"run_id": self.name("run", data["run_id"])}
            case "values":
                return self.values(data)
            case "updates":
                return {
                    k: [self.interrupt(i) for i in v] if k == "__interrupt__" else self.values(v)
                    for k, v in data.items()
                }
        return self.value(data)


async def http_status(call: Awaitable[Any]) -> int:
    """The HTTP status of a call that may fail."""
    try:
        await call
    except Exception as error:
        return error.response.status_code  # type: ignore[attr-defined]
    return 200
