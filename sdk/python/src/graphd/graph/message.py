"""States that hold a conversation."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from graphd.graph.state import StateGraph
from graphd.messages import REMOVE_ALL_MESSAGES, AnyMessage, add_messages, coerce_message, from_dict
from graphd.runtime.task import required_task


class MessagesState(TypedDict):
    """A state with one key, ``messages``."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph(StateGraph):
    """A graph whose whole state is a list of messages."""

    def __init__(self) -> None:
        super().__init__(Annotated[list[AnyMessage], add_messages])


def push_message(message: Any, *, state_key: str | None = "messages") -> Any:
    """Sends a message to the "messages" stream at once, from inside a node.

    It is also added to the state key when the node ends, unless ``state_key``
    is None. Pieces of one message share its id.
    """
    task = required_task("push_message()")
    fields = coerce_message(message)
    if not fields.get("id"):
        raise ValueError("Message ID is required")
    task.host.emit("messages", "", fields, False)
    if state_key:
        task.pushed.append((state_key, fields))
    return from_dict(fields)


Messages = Any

__all__ = ["REMOVE_ALL_MESSAGES", "MessageGraph", "Messages", "MessagesState", "add_messages", "push_message"]
