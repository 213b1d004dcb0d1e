"""States that hold a conversation."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from graphd.graph.state import StateGraph
from graphd.messages import REMOVE_ALL_MESSAGES, AnyMessage, add_messages
from graphd.runtime.push import push_message


class MessagesState(TypedDict):
    """A state with one key, ``messages``."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph(StateGraph):
    """A graph whose whole state is a list of messages."""

    def __init__(self) -> None:
        super().__init__(Annotated[list[AnyMessage], add_messages])


Messages = Any

__all__ = ["REMOVE_ALL_MESSAGES", "MessageGraph", "Messages", "MessagesState", "add_messages", "push_message"]
