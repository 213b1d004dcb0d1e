"""Schemas of tool calls: models of pydantic, and what such models are made of."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from graphd.packages import imported_attribute, require_module
from graphd.prebuilt.tool import Tool

_FROM_LANGCHAIN = ("run_manager", "callbacks")
"""Parameters that LangChain fills in, and no model."""


def read_schema(given: Any) -> tuple[str, Any]:
    """The name of the tool that is called, and the model of its arguments.

    ``given`` is such a model, a tool or a function; ValueError says that it is none.
    """
    if isinstance(given, type) and issubclass(given, _model_classes()):
        return given.__name__, given
    if isinstance(given, Tool) and given.source is not None:
        return given.name, read_schema(given.source)[1]
    if hasattr(given, "invoke") and hasattr(given, "args_schema"):
        return given.name, _model_of_tool(given)
    if inspect.isroutine(given):
        return given.__name__, _model_of_function(given)
    raise ValueError(f"schemas: {given!r} is none; want a model of pydantic, a tool or a function")


def _model_classes() -> tuple[type, ...]:
    """Also that of pydantic 1, of which there are models only where it is imported."""
    older = imported_attribute("pydantic.v1.main", "BaseModel")
    return (require_module("pydantic", "ValidationNode").BaseModel, *([older] if older else []))


def _model_of_tool(tool: Any) -> Any:
    model = tool.args_schema
    if not (isinstance(model, type) and issubclass(model, _model_classes())):
        raise ValueError(f"schemas: the args_schema of the tool {tool.name!r} is no model of pydantic; got {model!r}")
    return model


def _model_of_function(function: Callable[..., Any]) -> Any:
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name in ("self", "cls") and "." in function.__qualname__:
        del parameters[0]  # a method that was taken from its class
    fields = {p.name: _read_field(p, hints.get(p.name, Any)) for p in parameters if p.name not in _FROM_LANGCHAIN}
    create_model = require_module("pydantic", "ValidationNode").create_model
    return create_model("Validation", __config__={"arbitrary_types_allowed": True}, **fields)


def _read_field(parameter: inspect.Parameter, hint: Any) -> tuple[Any, Any]:
    """The type of a field, and its default."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return tuple[hint, ...], None
    if parameter.kind is parameter.VAR_KEYWORD:
        return dict[str, hint], None
    return hint, ... if parameter.default is parameter.empty else parameter.default


def check_arguments(model: Any, arguments: Mapping[str, Any]) -> str:
    """The arguments as the model reads them, as JSON; raises one of ``validation_errors``."""
    if hasattr(model, "model_validate"):
        return str(model.model_validate(arguments).model_dump_json())
    return str(model.parse_obj(arguments).json())


def validation_errors() -> tuple[type[Exception], ...]:
    """What models raise for wrong arguments."""
    older = imported_attribute("pydantic.v1.error_wrappers", "ValidationError")
    return (require_module("pydantic", "ValidationNode").ValidationError, *([older] if older else []))


__all__ = ["check_arguments", "read_schema", "validation_errors"]
