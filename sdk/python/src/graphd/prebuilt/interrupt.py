"""The shapes of questions about an action, and of the answers to them, as inboxes for LangGraph's agents know them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class HumanInterruptConfig(TypedDict, total=False):
    """What the person may do; what is left out is not allowed."""

    allow_ignore: bool
    allow_respond: bool
    allow_edit: bool
    allow_accept: bool


class ActionRequest(TypedDict):
    """An action with its arguments, like the call of a tool."""

    action: str
    args: dict[str, Any]


class HumanInterrupt(TypedDict):
    """A question about an action, for ``interrupt``."""

    action_request: ActionRequest
    config: HumanInterruptConfig
    description: str | None


class HumanResponse(TypedDict):
    """The answer: for "edit" ``args`` is the action to take instead, for "response" a text, otherwise None."""

    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None


__all__ = ["ActionRequest", "HumanInterrupt", "HumanInterruptConfig", "HumanResponse"]
