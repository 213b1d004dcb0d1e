"""What a graph takes and returns, as pydantic models and JSON schemas. Needs pydantic."""

from __future__ import annotations

import dataclasses
import functools
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import Any, get_origin, get_type_hints

from graphd.channels import BaseChannel, Topic
from graphd.declare.schema import Schema
from graphd.packages import require_module

_REQUIRED = ...


def build_json_schema(schema: Schema, name: str) -> dict[str, Any]:
    """The JSON schema of a state class, as the class says it."""
    pydantic = _pydantic()
    if _is_model(schema.type):
        return dict(schema.type.model_json_schema())
    if _is_typed_dict(schema.type):
        return dict(pydantic.TypeAdapter(_readable_typed_dict(schema.type)).json_schema())
    if schema.is_root:
        (channel,) = schema.channels().values()
        return dict(build_root_model(name, update_type(channel), None).model_json_schema())
    fields = {
        key: (update_type(channel), _find_default(schema.type, key, update_type(channel)))
        for key, channel in schema.channels().items()
    }
    return dict(build_model(name, fields).model_json_schema())


def build_context_schema(declared: Any) -> dict[str, Any] | None:
    """The JSON schema of a context class; None without one."""
    if declared is None:
        return None
    if _is_model(declared):
        return dict(declared.model_json_schema())
    if _is_typed_dict(declared) or dataclasses.is_dataclass(declared):
        return dict(_pydantic().TypeAdapter(_readable_typed_dict(declared)).json_schema())
    raise ValueError(f"context_schema must be a pydantic model, a TypedDict or a dataclass; it is {declared!r}")


def build_input_model(schema: Schema, name: str) -> Any:
    """The pydantic model of an input."""
    return schema.type if _is_model(schema.type) else build_root_model(name, schema.type)


def build_output_model(schema: Schema, name: str) -> Any:
    """The pydantic model of an output: any of its keys."""
    if schema.is_root:
        (channel,) = schema.channels().values()
        return build_root_model(name, value_type(channel))
    return build_model(name, {key: (value_type(channel), None) for key, channel in schema.channels().items()})


def build_config_model(context: Any, include: Sequence[str], name: str) -> Any:
    """The pydantic model of a config: the context, and fields of LangChain's RunnableConfig."""
    fields: dict[str, Any] = {} if context is None else {"configurable": (_readable_typed_dict(context), None)}
    wanted = [field for field in include if field != "configurable"]
    if wanted:
        known = get_type_hints(require_module("langchain_core.runnables.config", "include").RunnableConfig)
        if unknown := [field for field in wanted if field not in known]:
            raise ValueError(f"include: a config has no {', '.join(unknown)}; it has {', '.join(known)}")
        fields |= {field: (known[field], None) for field in known if field in wanted}
    return build_model(name, fields)


def build_model(name: str, fields: Mapping[str, tuple[Any, Any]]) -> Any:
    """A pydantic model; fields that pydantic can't name as they are have an alias."""
    pydantic = _pydantic()
    config = pydantic.ConfigDict(arbitrary_types_allowed=True, frozen=True, protected_namespaces=())
    named: dict[str, Any] = {}
    for key, (typ, default) in fields.items():
        typ = _readable_typed_dict(typ)
        if key.startswith("_") or hasattr(pydantic.BaseModel, key):
            title = key.lstrip("_").replace("_", " ").title()
            field = pydantic.Field(default=default, alias=key, serialization_alias=key, title=title)
            named[f"private_{key}"] = (typ, field)
        else:
            named[key] = (typ, default)
    return pydantic.create_model(name, __config__=config, **named)


def build_root_model(name: str, typ: Any, default: Any = _REQUIRED) -> Any:
    """A pydantic model of one value."""
    pydantic = _pydantic()

    def model_json_schema(cls: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super(cls, cls).model_json_schema(*args, **kwargs)
        return found | {"title": name}

    attributes: dict[str, Any] = {
        "model_json_schema": classmethod(model_json_schema),
        "__annotations__": {"root": _readable_typed_dict(typ)},
        "__module__": __name__,
        "model_config": pydantic.ConfigDict(arbitrary_types_allowed=True),
    }
    if default is not _REQUIRED:
        attributes["root"] = default
    return type(name, (pydantic.RootModel,), attributes)


def update_type(channel: BaseChannel[Any]) -> Any:
    """What may be written to a key."""
    return channel.typ | list[channel.typ] if isinstance(channel, Topic) else channel.typ  # type: ignore[name-defined]


def value_type(channel: BaseChannel[Any]) -> Any:
    """What a key holds."""
    return Sequence[channel.typ] if isinstance(channel, Topic) else channel.typ  # type: ignore[name-defined]


def _pydantic() -> Any:
    return require_module("pydantic", "a schema")


def _is_model(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, _pydantic().BaseModel)


def _is_typed_dict(declared: Any) -> bool:
    return isinstance(declared, type) and hasattr(declared, "__required_keys__")  # of typing or typing_extensions


def _readable_typed_dict(declared: Any) -> Any:
    """The class as pydantic takes it: before Python 3.12 it refuses those of ``typing``."""
    if sys.version_info >= (3, 12) or not typing.is_typeddict(declared):
        return declared
    return _rebuild_typed_dict(declared)


@functools.lru_cache(maxsize=256)
def _rebuild_typed_dict(declared: Any) -> Any:
    extensions = require_module("typing_extensions", "a schema")
    hints = get_type_hints(declared, include_extras=True)
    required = {
        key: extensions.Required[hint] if key in declared.__required_keys__ else extensions.NotRequired[hint]
        for key, hint in hints.items()
        if get_origin(hint) not in (extensions.Required, extensions.NotRequired)
    }
    readable = extensions.TypedDict(declared.__name__, hints | required)
    readable.__doc__, readable.__module__ = declared.__doc__, declared.__module__
    return readable


def _find_default(declared: Any, key: str, typ: Any) -> Any:
    """What a key of a dataclass has when it is left out; ``...`` when it must not be."""
    for field in dataclasses.fields(declared) if dataclasses.is_dataclass(declared) else ():
        if field.name == key and field.default is not dataclasses.MISSING:
            return field.default
        if field.name == key and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return None if _allows_none(typ) else _REQUIRED


def _allows_none(typ: Any) -> bool:
    return typ is None or type(None) in typing.get_args(typ)
