"""What tools return, as answers to the calls of a model."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphd.messages import REMOVE_ALL_MESSAGES, coerce_messages, from_dict, to_dict
from graphd.values.command import Command, Send

_BLOCK_TYPES = frozenset(
    ("text", "image_url", "image", "json", "search_result", "custom_tool_call_output", "document", "file")
)


def read_content(result: Any) -> Any:
    """A result as a model reads it: a text, or a list of content blocks; anything else as the text of it."""
    if isinstance(result, str) or (isinstance(result, list) and all(map(_is_block, result))):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(result)


def _is_block(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") in _BLOCK_TYPES


def is_answer(result: Any) -> bool:
    """A tool message or a command, which goes to the state as it is."""
    return isinstance(result, Command) or (not isinstance(result, Mapping) and getattr(result, "type", "") == "tool")


def read_answers(result: Any, call: Mapping[str, Any], key: str, as_list: bool) -> list[Any] | None:
    """The messages and commands that a tool has returned, None when it has returned something else.

    Exactly one message must answer the call, unless a command goes to another graph or changes no messages.
    """
    several = isinstance(result, list) and len(result) > 0 and all(map(is_answer, result))
    if not several and not is_answer(result):
        return None
    answers = [_read_answer(part, call, key, as_list) for part in (result if several else [result])]
    matching = sum(_count_matching(part, call, key) for part in answers)
    if matching != 1 and (several or _needs_answer(result, key)):
        raise ValueError(
            f"tool {call['name']!r} returned {matching} tool messages with the tool_call_id {call['id']!r}; "
            "want exactly one that answers the call, in the result or in the update of a command"
        )
    return answers


def _read_answer(part: Any, call: Mapping[str, Any], key: str, as_list: bool) -> Any:
    if not isinstance(part, Command):
        part.content = read_content(part.content)
        return part
    if not isinstance(part.update, (Mapping, list)):
        return part
    if isinstance(part.update, list) != as_list:
        wanted = "a list of messages" if as_list else f"a dict with {key!r}"
        raise ValueError(
            f"tool {call['name']!r} returned a command with the update {part.update!r:.200}; want {wanted}"
        )
    named = [_name_message(m, call) for m in _messages_of(part, key)]
    if isinstance(part.update, list):
        return dataclasses.replace(part, update=named)
    return dataclasses.replace(part, update={**part.update, **({key: named} if key in part.update else {})})


def _messages_of(part: Command[Any], key: str) -> list[Any]:
    given = part.update if isinstance(part.update, list) else (part.update or {}).get(key, [])
    return given if isinstance(given, list) else [given]


def _name_message(message: Any, call: Mapping[str, Any]) -> Any:
    """The message, with the name of the tool when it answers the call."""
    (fields,) = coerce_messages(message)
    return from_dict(fields | {"name": call["name"]}) if _is_matching(fields, call) else message


def _count_matching(part: Any, call: Mapping[str, Any], key: str) -> int:
    if not isinstance(part, Command):
        return int(_is_matching(to_dict(part), call))
    if not isinstance(part.update, (Mapping, list)):
        return 0
    return sum(_is_matching(fields, call) for fields in coerce_messages(_messages_of(part, key)))


def _is_matching(fields: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    return fields.get("type") == "tool" and fields.get("tool_call_id") == call["id"]


def _needs_answer(result: Any, key: str) -> bool:
    """A command to this graph that changes the state, other than one that removes all messages."""
    if not isinstance(result, Command) or result.graph is not None or not isinstance(result.update, (Mapping, list)):
        return False
    messages = coerce_messages(_messages_of(result, key))
    return not (len(messages) == 1 and (messages[0]["type"], messages[0].get("id")) == ("remove", REMOVE_ALL_MESSAGES))


def combine_answers(answers: Sequence[Any], key: str, as_list: bool) -> Any:
    """The update of a node: messages alone as one, with commands among them as a list.

    Sends to the enclosing graph become one command, for a node can only give one.
    """
    if not any(isinstance(answer, Command) for answer in answers):
        return list(answers) if as_list else {key: list(answers)}
    combined: list[Any] = []
    sends: list[Any] = []
    for answer in answers:
        if not isinstance(answer, Command):
            combined.append([answer] if as_list else {key: [answer]})
        elif answer.graph == Command.PARENT and isinstance(answer.goto, list) and _are_sends(answer.goto):
            sends.extend(answer.goto)
        else:
            combined.append(answer)
    return [*combined, Command(graph=Command.PARENT, goto=sends)] if sends else combined


def _are_sends(targets: Sequence[Any]) -> bool:
    return bool(targets) and all(isinstance(target, Send) for target in targets)


__all__ = ["combine_answers", "is_answer", "read_answers", "read_content"]
