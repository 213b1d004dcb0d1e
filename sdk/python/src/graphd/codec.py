"""Python values as JSON text and back.

Anything becomes plain JSON that any language reads. What type it was is not
stored: the annotations of the state say so when it is read.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from graphd import messages
from graphd._gen.v1 import payload_pb2 as pb
from graphd.values.command import Command, Overwrite, Send

_TAG = "__graphd__"


class Tagged:
    """A value whose messages come back as messages, whatever its annotation says."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def dumps(value: Any) -> str:
    """JSON text of a value; TypeError or ValueError names what has none."""
    try:
        return _ENCODER.encode(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply, or contains itself; a server takes 128 levels") from error


def loads(text: str) -> Any:
    """The value of JSON text, with commands and sends as objects again."""
    return json.loads(text, object_hook=_restore_object if _TAG in text else None)


def to_payload(value: Any) -> pb.Payload:
    """A value as it travels."""
    return pb.Payload(json=dumps(value))


def value_of(message: pb.Payload) -> Any:
    """The value of a payload; None when it holds none."""
    return loads(message.json) if message.WhichOneof("body") == "json" else None


def to_plain(value: Any) -> Any:
    """The next simpler form of a value that JSON does not know."""
    if messages.is_message(value):
        return messages.to_dict(value)
    if isinstance(value, Tagged):
        return _tag_messages(value.value)
    if isinstance(value, Overwrite):
        return {"__overwrite__": value.value}
    if isinstance(value, (Command, Send)):
        return _tag_command(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
    for kind, convert in _SIMPLER:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"{type(value).__name__} has no JSON form: {value!r:.200}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=to_plain)


def _sort_set(value: Any) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=repr)


_SIMPLER: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda v: v.value),
    ((set, frozenset), _sort_set),
    ((datetime.datetime, datetime.date, datetime.time), lambda v: v.isoformat()),
    (datetime.timedelta, lambda v: v.total_seconds()),
    ((uuid.UUID, decimal.Decimal, pathlib.PurePath), str),
    ((bytes, bytearray), lambda v: base64.b64encode(v).decode()),
    (Mapping, dict),
    (BaseException, lambda v: {"type": type(v).__name__, "message": str(v)}),
)


def _tag_messages(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _tag_messages(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tag_messages(v) for v in value]
    return {_TAG: "message"} | messages.to_dict(value) if messages.is_message(value) else value


def _tag_command(value: Any) -> dict[str, Any]:
    if isinstance(value, Send):
        return {_TAG: "send", "node": value.node, "arg": value.arg}
    given = {"update": value.update, "resume": value.resume, "goto": value.goto, "graph": value.graph}
    return {_TAG: "command"} | {k: v for k, v in given.items() if v is not None and v != ()}


def _restore_object(fields: dict[str, Any]) -> Any:
    """The object of a tagged dict. What can't be one came from outside, and stays a dict: it must stay readable."""
    parts = {k: v for k, v in fields.items() if k != _TAG}
    with contextlib.suppress(TypeError, ValueError):
        match fields.get(_TAG):
            case "send":
                return Send(**parts)
            case "command":
                return Command(**parts)
            case "message" if messages.is_message(message := messages.read_stored(parts)):
                return message
    return fields


def decoder_of(annotation: Any) -> Callable[[Any], Any]:
    """A function that turns JSON values into what an annotation asks for."""
    try:
        return _cached_decoder(annotation)
    except TypeError:  # unhashable annotations; they ask for nothing we know
        return _keep_value


def _keep_value(value: Any) -> Any:
    return value


@functools.lru_cache(maxsize=1024)
def _cached_decoder(annotation: Any) -> Callable[[Any], Any]:
    origin = get_origin(annotation)
    if origin is Annotated or getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly"):
        return decoder_of(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return _union_decoder(
            [decoder_of(a) for a in get_args(annotation) if a is not type(None)], get_args(annotation)
        )
    if origin is not None:
        return _container_decoder(origin, get_args(annotation))
    if not isinstance(annotation, type):
        return _keep_value
    return _class_decoder(annotation)


def _union_decoder(options: list[Callable[[Any], Any]], members: tuple[Any, ...]) -> Callable[[Any], Any]:
    if any(messages.is_message_class(get_args(m)[0] if get_origin(m) is Annotated else m) for m in members):
        return _decode_message
    real = [o for o in options if o is not _keep_value]
    if len(options) != 1 or not real:
        return _keep_value  # more than one reading: leave it as it is stored
    return lambda v: None if v is None else real[0](v)


def _decode_message(value: Any) -> Any:
    return messages.read_stored(value) if isinstance(value, Mapping) and "type" in value else value


def _container_decoder(origin: Any, args: tuple[Any, ...]) -> Callable[[Any], Any]:
    if origin in (set, frozenset, tuple) or (isinstance(origin, type) and issubclass(origin, (list,))):
        item = (
            decoder_of(args[0])
            if args and (origin is not tuple or (len(args) == 2 and args[1] is ...))
            else _keep_value
        )
        if origin is list and item is _keep_value:
            return _keep_value
        return lambda v: origin(item(x) for x in v) if isinstance(v, list) else v
    if isinstance(origin, type) and issubclass(origin, dict) and len(args) == 2:
        item = decoder_of(args[1])
        return (
            _keep_value
            if item is _keep_value
            else lambda v: {k: item(x) for k, x in v.items()} if isinstance(v, dict) else v
        )
    if isinstance(origin, type) and "Sequence" in origin.__name__ and args:
        item = decoder_of(args[0])
        return _keep_value if item is _keep_value else lambda v: [item(x) for x in v] if isinstance(v, list) else v
    return _keep_value


def _class_decoder(kind: type) -> Callable[[Any], Any]:
    if messages.is_message_class(kind):
        return _decode_message
    if hasattr(kind, "model_validate"):
        return lambda v: kind.model_validate(v) if isinstance(v, Mapping) else v
    if dataclasses.is_dataclass(kind):
        return lambda v: _decode_dataclass(kind, v) if isinstance(v, Mapping) else v
    if issubclass(kind, enum.Enum):
        return lambda v: v if v is None or isinstance(v, kind) else kind(v)
    if issubclass(kind, (set, frozenset, tuple)) and kind in (set, frozenset, tuple):
        return lambda v: kind(v) if isinstance(v, list) else v
    if kind in (datetime.datetime, datetime.date, datetime.time):
        return lambda v: kind.fromisoformat(v) if isinstance(v, str) else v
    if kind is datetime.timedelta:
        return lambda v: datetime.timedelta(seconds=v) if isinstance(v, (int, float)) else v
    if kind in (uuid.UUID, decimal.Decimal) or issubclass(kind, pathlib.PurePath):
        return lambda v: kind(v) if isinstance(v, str) else v
    if kind is bytes:
        return lambda v: base64.b64decode(v) if isinstance(v, str) else v
    return _keep_value


def _decode_dataclass(kind: type, fields: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind) if f.init}
    return kind(**{k: decoder_of(hints.get(k, Any))(v) for k, v in fields.items() if k in known})
