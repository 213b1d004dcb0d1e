"""Checks the arguments that a model gives against the signature of a function."""

from __future__ import annotations

import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

Check = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes of what a model gave what a function takes; WrongArgumentsError says what is wrong.

What the function does not know is left out, as LangChain does.
"""


class WrongArgumentsError(Exception):
    """Arguments don't fit; the text has a line for each."""


@dataclass(frozen=True)
class Parameters:
    """What a function takes by name."""

    types: Mapping[str, Any]
    required: Collection[str]
    takes_more: bool
    """Arguments of any other name, too."""

    @classmethod
    def of(cls, function: Callable[..., Any], filled: Collection[str]) -> Parameters:
        """Those of a function, without the arguments that are filled in."""
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except Exception:  # annotations that can't be read ask for nothing
            hints = {}
        listed = inspect.signature(function).parameters.values()
        by_name = [p for p in listed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name not in filled]
        return cls(
            types={p.name: hints.get(p.name, Any) for p in by_name},
            required={p.name for p in by_name if p.default is p.empty},
            takes_more=any(p.kind is p.VAR_KEYWORD for p in listed),
        )

    def build_adapter(self) -> Any:
        """The adapter of pydantic for arguments; None without pydantic, and for a type that it can't check."""
        try:
            pydantic, more = importlib.import_module("pydantic"), importlib.import_module("typing_extensions")
        except ImportError:
            return None
        fields = {name: hint if name in self.required else more.NotRequired[hint] for name, hint in self.types.items()}
        shape = more.TypedDict("Arguments", fields)
        shape.__pydantic_config__ = {"arbitrary_types_allowed": True}
        try:
            return pydantic.TypeAdapter(shape)
        except Exception:
            return None


def build_check(function: Callable[..., Any], filled: Collection[str]) -> Check:
    """The check of a function, without the arguments that are filled in."""
    known = Parameters.of(function, filled)
    convert = _pydantic_check(known) or functools.partial(_check_by_class, known.types, known.required)

    def check(arguments: Mapping[str, Any]) -> dict[str, Any]:
        unknown = {k: v for k, v in arguments.items() if k not in known.types and k not in filled}
        more = unknown if known.takes_more else {}
        return more | convert({k: v for k, v in arguments.items() if k in known.types})

    return check


def _pydantic_check(known: Parameters) -> Check | None:
    adapter = known.build_adapter()
    if adapter is None:
        return None
    pydantic = importlib.import_module("pydantic")

    def convert(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(adapter.validate_python(dict(arguments)))
        except pydantic.ValidationError as error:
            lines = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise WrongArgumentsError("\n".join(lines)) from None

    return convert


def _check_by_class(
    types: Mapping[str, Any], required: Collection[str], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Without pydantic: what is missing, and the simplest types."""
    problems = [f"{name}: Field required" for name in types if name in required and name not in arguments]
    taken: dict[str, Any] = {}
    for name, value in arguments.items():
        try:
            taken[name] = _convert_simple(types[name], value)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise WrongArgumentsError("\n".join(problems))
    return taken


_SIMPLE: dict[Any, tuple[tuple[type, ...], str]] = {
    int: ((int, str), "a valid integer"),
    float: ((int, float, str), "a valid number"),
    str: ((str,), "a valid string"),
    bool: ((bool,), "a valid boolean"),
    list: ((list,), "a valid list"),
    dict: ((dict,), "a valid dictionary"),
}


def _convert_simple(kind: Any, value: Any) -> Any:
    if kind not in _SIMPLE:
        return value
    accepted, said = _SIMPLE[kind]
    try:
        if isinstance(value, accepted) and (kind is bool or not isinstance(value, bool)):
            return kind(value)
    except ValueError:
        pass
    raise ValueError(f"Input should be {said}")


__all__ = ["Parameters", "WrongArgumentsError", "build_check"]
