"""Lets a person decide about every call of a tool."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from graphd.prebuilt.tool import Tool
from graphd.runtime.ask import interrupt


class HumanInterruptConfig(TypedDict, total=False):
    """What the person may do."""

    allow_accept: bool
    allow_edit: bool
    allow_respond: bool
    allow_ignore: bool


_RIGHTS = {"accept": "allow_accept", "edit": "allow_edit", "response": "allow_respond", "ignore": "allow_ignore"}


def _answer_schema(allowed: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer must look like: the server refuses others, and the
    question stays open."""
    one = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": [kind for kind, right in _RIGHTS.items() if allowed.get(right)]}, "args": {}},
        "if": {"properties": {"type": {"const": "edit"}}},
        "then": {"required": ["args"], "properties": {"args": {"type": "object"}}},
    }
    return {"if": {"type": "array"}, "then": {"minItems": 1, "maxItems": 1, "items": one}, "else": one}


def add_human_in_the_loop(
    tool: Any,
    *,
    interrupt_config: HumanInterruptConfig | None = None,
    description: str = "Please review the tool call",
) -> Tool:
    """The same tool, asking a person before it does anything.

    The answer is ``{"type": "accept"}``, ``{"type": "edit", "args": {"args":
    {...}}}``, ``{"type": "response", "args": "text"}`` or ``{"type":
    "ignore"}``, alone or in a list of one.
    """
    inner = Tool.of(tool)
    allowed: HumanInterruptConfig = interrupt_config or {
        "allow_accept": True,
        "allow_edit": True,
        "allow_respond": True,
        "allow_ignore": True,
    }
    if inner.is_async:

        async def reviewed(**arguments: Any) -> Any:
            done, arguments, instead = _ask_reviewer(inner, allowed, description, arguments)
            return instead if done else await inner.call(**arguments)

    else:

        def reviewed(**arguments: Any) -> Any:  # type: ignore[misc]
            done, arguments, instead = _ask_reviewer(inner, allowed, description, arguments)
            return instead if done else inner.call(**arguments)

    functools.update_wrapper(reviewed, inner.call, assigned=("__doc__", "__module__"), updated=())
    is_async = inspect.iscoroutinefunction(reviewed)
    return Tool(inner.name, reviewed, is_async, inner.is_function, inner.description)


def _ask_reviewer(
    tool: Tool, allowed: HumanInterruptConfig, description: str, arguments: Mapping[str, Any]
) -> tuple[bool, dict[str, Any], Any]:
    """Whether the person has settled the call, and the arguments or result."""
    question = {
        "action_request": {"action": tool.name, "args": dict(arguments)},
        "config": dict(allowed),
        "description": description,
    }
    message = f"{description}: {tool.name}"
    answer = interrupt(question, reason="approval", message=message, schema=_answer_schema(allowed))
    while isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    kind = answer["type"]
    settle: dict[str, Callable[[], tuple[bool, dict[str, Any], Any]]] = {
        "accept": lambda: (False, dict(arguments), None),
        "edit": lambda: (False, _read_edit(answer), None),
        "response": lambda: (True, {}, answer.get("args")),
        "ignore": lambda: (True, {}, f"The call of {tool.name} was ignored by the user."),
    }
    return settle[kind]()


def _read_edit(answer: Mapping[str, Any]) -> dict[str, Any]:
    edited = answer.get("args")
    if isinstance(edited, Mapping) and isinstance(edited.get("args"), Mapping):
        edited = edited["args"]
    if not isinstance(edited, Mapping):
        raise ValueError(f"an edit needs the new arguments under args; it is {answer!r}")
    return dict(edited)
