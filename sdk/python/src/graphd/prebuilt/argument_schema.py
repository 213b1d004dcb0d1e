"""The arguments of a tool as a JSON Schema, for people who change them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from graphd.prebuilt.arguments import Parameters
from graphd.prebuilt.injected import find_injections
from graphd.prebuilt.tool import Tool

Json = dict[str, Any]


def read_argument_schema(tool: Tool) -> Json:
    """The schema of what a model gives to a tool; any object where the tool does not say.

    Names that the tool does not know are refused: it would leave them out.
    """
    if tool.source is None:
        return {"type": "object"}
    if not tool.is_function:
        return _of_langchain_tool(tool.source)
    return _of_function(tool.source)


def _of_langchain_tool(tool: Any) -> Json:
    given = tool.tool_call_schema
    if isinstance(given, Mapping):  # not made of a signature: it says what it takes
        return {"type": "object", **given}
    schema = given.model_json_schema() if hasattr(given, "model_json_schema") else given.schema()
    return {"additionalProperties": False, **schema}


def _of_function(function: Callable[..., Any]) -> Json:
    known = Parameters.of(function, find_injections(function))
    schema = {"type": "object", "properties": dict.fromkeys(known.types, True), "required": sorted(known.required)}
    adapter = known.build_adapter()
    if adapter is not None:
        pydantic = importlib.import_module("pydantic")
        with contextlib.suppress(pydantic.errors.PydanticUserError):  # a type without one: names alone are checked
            schema = adapter.json_schema()
    return {**schema, "additionalProperties": known.takes_more}


__all__ = ["Json", "read_argument_schema"]
