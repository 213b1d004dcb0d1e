"""Chats in which a tool call was left without an answer.

Models refuse them. They come about when a run is stopped, or when a
message is written into the chat between a call and its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphd.errors import ErrorCode, with_code
from graphd.messages import ToolMessage


def unanswered_tool_calls(messages: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The tool calls that no tool message answers, in order."""
    listed = list(messages)
    answered = {_read_field(m, "tool_call_id") for m in listed if _read_field(m, "type") == "tool"}
    calls = [c for m in listed if _read_field(m, "type") == "ai" for c in _read_field(m, "tool_calls") or []]
    return [c for c in calls if c["id"] not in answered]


def validate_chat_history(messages: Iterable[Any]) -> None:
    """Raises ValueError when a tool call has no answer."""
    left = unanswered_tool_calls(messages)
    if left:
        names = ", ".join(f"{c['name']} ({c['id']})" for c in left[:5])
        text = f"{len(left)} tool calls have no tool message that answers them: {names}"
        raise ValueError(with_code(text, ErrorCode.INVALID_CHAT_HISTORY))


def repair_chat_history(
    messages: Iterable[Any], content: str = "The call was stopped before it had a result."
) -> list[Any]:
    """The same chat with an answer for every tool call, each after its call.

    Answers that stand elsewhere are moved; answers to no call are left out.
    """
    listed = list(messages)
    answers: dict[Any, Any] = {}
    for message in listed:
        if _read_field(message, "type") == "tool":
            answers.setdefault(_read_field(message, "tool_call_id"), message)
    repaired: list[Any] = []
    for message in listed:
        if _read_field(message, "type") == "tool":
            continue
        repaired.append(message)
        for call in (_read_field(message, "tool_calls") or []) if _read_field(message, "type") == "ai" else []:
            missing = ToolMessage(content, name=call["name"], tool_call_id=call["id"], status="error")
            repaired.append(answers.get(call["id"], missing))
    return repaired


def _read_field(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    return getattr(value, key, None)
