"""What a person may decide about a call of a tool, as a JSON Schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from graphd.prebuilt.argument_schema import Json

# What a decision has beside its type.
_MAY_HAVE = {"approve": (), "edit": ("args", "name"), "reject": ("message",), "respond": ("message",)}
_MUST_HAVE = {"edit": ["args"], "respond": ["message"]}


def build_decision_schema(allowed: Collection[str], tool: str, arguments: Mapping[str, Any]) -> Json:
    """The schema of decisions about a call: {"type": "approve"}, {"type": "edit", "args": {…}}, {"type": "reject",
    "message": …} and {"type": "respond", "message": …}, as far as they are allowed.

    All fields are in one object, and conditions say which belong to a type, so that a violation names its place.
    """
    fields: Json = {
        "args": {"description": "The arguments to use"} | _embed(arguments, "#/properties/args"),
        "name": {"const": tool, "description": "The tool, which can't be changed"},
        "message": {"type": "string", "description": "What the model is told"},
    }
    used = [name for name in fields if any(name in _MAY_HAVE[kind] for kind in allowed)]
    first, *others = [_condition(kind) for kind in sorted(allowed, key=lambda kind: kind != "edit")]
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(allowed)}} | {name: fields[name] for name in used},
        "additionalProperties": False,
        **first,
        **({"allOf": others} if others else {}),
    }


def _condition(kind: str) -> Json:
    fields = ["type", *_MAY_HAVE[kind]]
    then = {"properties": dict.fromkeys(fields, True), "additionalProperties": False}
    if kind in _MUST_HAVE:
        then["required"] = _MUST_HAVE[kind]
    return {"if": {"properties": {"type": {"const": kind}}, "required": ["type"]}, "then": then}


def _embed(schema: Mapping[str, Any], at: str) -> Json:
    """The schema as a part of another one: what refers to a part of it finds it there."""
    if "$id" in schema:  # references in it are its own
        return dict(schema)
    moved = _move(schema, at)
    return {key: value for key, value in moved.items() if key != "$schema"}


def _move(part: Any, at: str) -> Any:
    if isinstance(part, list):
        return [_move(one, at) for one in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: at + value[1:] if key == "$ref" and isinstance(value, str) and value.startswith("#") else _move(value, at)
        for key, value in part.items()
    }


__all__ = ["build_decision_schema"]
