"""Reads the keys of a state from a class: TypedDict, dataclass or pydantic."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from graphd import messages
from graphd.channels import BaseChannel, BinaryOperatorAggregate, LastValue
from graphd.codec import decoder_of
from graphd.constants import ROOT
from graphd.managed import ManagedValue

Construct = Callable[[dict[str, Any]], Any]


@dataclasses.dataclass
class Key:
    """One key of a state."""

    name: str
    channel: BaseChannel[Any] | None
    managed: type[ManagedValue] | None
    decode: Callable[[Any], Any]


@dataclasses.dataclass
class Schema:
    """The keys of a class, and how to make one of its values from them."""

    type: Any
    keys: dict[str, Key]
    construct: Construct

    @property
    def is_root(self) -> bool:
        """The whole state is one value."""
        return list(self.keys) == [ROOT]

    def channels(self) -> dict[str, BaseChannel[Any]]:
        """The keys that are stored."""
        return {k.name: k.channel for k in self.keys.values() if k.channel is not None}

    def managed(self) -> dict[str, type[ManagedValue]]:
        """The keys that are computed."""
        return {k.name: k.managed for k in self.keys.values() if k.managed is not None}

    def build_value(self, stored: Mapping[str, Any]) -> Any:
        """What a node sees of stored values: only keys that are set."""
        read = {name: self._decode_key(name, stored[name]) for name in self.keys if name in stored}
        if self.is_root:
            return read.get(ROOT)
        return self.construct(read)

    def _decode_key(self, name: str, stored: Any) -> Any:
        try:
            return self.keys[name].decode(stored)
        except ValueError:
            if not hasattr(self.type, "model_validate"):
                raise
            return stored  # the whole model refuses it, and names the place


def read_schema(schema: Any) -> Schema:
    """Reads a class; anything that is none declares one value as the state."""
    if isinstance(schema, Schema):
        return schema
    if not (isinstance(schema, type) and _type_hints(schema)):
        return Schema(schema, {ROOT: _read_key(ROOT, schema)}, _keep_dict)
    keys = {name: _read_key(name, annotation) for name, annotation in _type_hints(schema).items()}
    return Schema(schema, keys, _find_constructor(schema))


def _type_hints(schema: type) -> dict[str, Any]:
    if schema.__module__ == "builtins":
        return {}
    return {k: v for k, v in get_type_hints(schema, include_extras=True).items() if k != "__slots__"}


def _keep_dict(values: dict[str, Any]) -> dict[str, Any]:
    return values


def _find_constructor(schema: type) -> Construct:
    if dataclasses.is_dataclass(schema) or hasattr(schema, "model_validate"):
        return lambda values: schema(**values)
    return _keep_dict


def _read_key(name: str, annotation: Any) -> Key:
    bare, extras = _unwrap_annotation(annotation)
    for extra in reversed(extras):
        if isinstance(extra, type) and issubclass(extra, ManagedValue):
            return Key(name, None, extra, decoder_of(Any))
    channel = _read_channel(name, bare, extras)
    if isinstance(channel, BinaryOperatorAggregate) and channel.operator is messages.add_messages:
        return Key(name, channel, None, _decode_messages)
    return Key(name, channel, None, decoder_of(bare))


def _decode_messages(stored: Any) -> Any:
    # An update may be a single message.
    return messages.to_objects(stored) if isinstance(stored, list) else messages.to_objects([stored])[0]


def _unwrap_annotation(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    extras: tuple[Any, ...] = ()
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            extras = (*more, *extras)
        elif getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly"):
            annotation = get_args(annotation)[0]
        else:
            return annotation, extras


def _read_channel(name: str, bare: Any, extras: tuple[Any, ...]) -> BaseChannel[Any]:
    channel: BaseChannel[Any] = LastValue(bare)
    if extras:
        last = extras[-1]
        if isinstance(last, BaseChannel):
            channel = last
        elif isinstance(last, type) and issubclass(last, BaseChannel):
            channel = last(bare)
        elif callable(last) and not isinstance(last, type):
            channel = BinaryOperatorAggregate(bare, _check_reducer(name, last))
    channel.key = name
    return channel


def _check_reducer(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # a builtin that does not tell
        return function
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(positional) == 2 or (variadic and len(positional) < 2):
        return function
    raise ValueError(f"the reducer of {name!r} must take two values, (current, update); it is {function!r}")


def merge_channels(schemas: Iterable[Mapping[str, BaseChannel[Any]]]) -> dict[str, BaseChannel[Any]]:
    """All keys of several schemas; one that says how to combine wins."""
    merged: dict[str, BaseChannel[Any]] = {}
    for schema in schemas:
        for name, channel in schema.items():
            if name not in merged or isinstance(merged[name], LastValue):
                merged[name] = channel
    if ROOT in merged and len(merged) > 1:
        raise ValueError(f"a state that is one value can't have keys too: {', '.join(sorted(merged))}")
    return merged


def fields_of(value: Any) -> dict[str, Any] | None:
    """The keys that an object of a state class sets; None if it is none."""
    if hasattr(type(value), "model_fields"):
        given = value.model_fields_set
        declared = type(value).model_fields
        return {
            name: getattr(value, name)
            for name, info in declared.items()
            if name in given or getattr(value, name) != info.get_default(call_default_factory=True)
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
    return None
