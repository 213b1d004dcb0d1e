"""Messages that a node sends before it ends."""

from __future__ import annotations

from typing import Any

from graphd.messages import coerce_message, from_dict
from graphd.runtime.task import required_task


def push_message(message: Any, *, state_key: str | None = "messages") -> Any:
    """Sends a message to the "messages" stream at once, from inside a node.

    It is also added to the state key when the node ends, unless ``state_key``
    is None. Pieces of one message share its id.
    """
    task = required_task("push_message()")
    fields = coerce_message(message)
    if not fields.get("id"):
        raise ValueError("Message ID is required")
    task.host.emit_event("messages", "", fields, False)
    if state_key:
        task.pushed.append((state_key, fields))
    return from_dict(fields)
