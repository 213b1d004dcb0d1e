"""Calls what people pass as nodes, routers and handlers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from graphd.errors import NodeError

_INJECTED = ("config", "writer", "store", "runtime", "previous")


@dataclass(frozen=True)
class Action:
    """Something callable with a state, and what else it wants to be told."""

    call: Callable[..., Any]
    is_async: bool
    wants: tuple[str, ...]
    error_parameter: str
    takes_state: bool
    name: str
    state_type: Any
    destinations: tuple[str, ...] = ()
    stream: Callable[..., AsyncIterator[Any]] | None = None
    """Of a runnable: yields its result in pieces, that add up."""

    def bind_arguments(self, state: Any, extras: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of one call."""
        named = {name: extras.get(name) for name in self.wants}
        if self.error_parameter:
            named[self.error_parameter] = extras.get("error")
        return ((state,) if self.takes_state else ()), named


def read_action(target: Any) -> Action:
    """Finds out how to call a function, coroutine function or runnable."""
    if hasattr(target, "invoke") and not inspect.isroutine(target):
        return _read_runnable(target)
    if not callable(target):
        raise TypeError(f"a node must be callable or have invoke(); got {target!r}")
    inner = target
    while isinstance(inner, functools.partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not isinstance(inner, type):
        inner = type(inner).__call__.__get__(inner)
    parameters = _read_parameters(target)
    hints = _type_hints(inner)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    rest = parameters[1:] if positional else parameters
    return Action(
        call=target,
        is_async=inspect.iscoroutinefunction(inner),
        wants=tuple(p.name for p in rest if p.name in _INJECTED and _is_keyword(p)),
        error_parameter=next((p.name for p in rest if hints.get(p.name) is NodeError or p.name == "error"), ""),
        takes_state=bool(positional),
        name=_name_of(target),
        state_type=hints.get(positional[0].name) if positional else None,
        destinations=_literal_names(hints.get("return")),
    )


def _literal_names(annotation: Any) -> tuple[str, ...]:
    """The node names of a return type like ``Command[Literal["a", "b"]]``."""
    if get_origin(annotation) is Literal:
        return tuple(str(a) for a in get_args(annotation))
    return tuple(name for a in get_args(annotation) for name in _literal_names(a))


def _read_runnable(target: Any) -> Action:
    is_async = hasattr(target, "ainvoke")
    return Action(
        call=target.ainvoke if is_async else target.invoke,
        is_async=is_async,
        wants=("config",),
        error_parameter="",
        takes_state=True,
        name=getattr(target, "name", None) or type(target).__name__,
        state_type=None,
        stream=getattr(target, "astream", None),
    )


def _read_parameters(target: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("state", inspect.Parameter.POSITIONAL_ONLY)]


def _type_hints(target: Any) -> dict[str, Any]:
    try:
        return get_type_hints(target)
    except Exception:  # names that can't be resolved say nothing
        return {}


def _is_keyword(p: inspect.Parameter) -> bool:
    return p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)


def _name_of(target: Any) -> str:
    while isinstance(target, functools.partial):
        target = target.func
    name = getattr(target, "__name__", None) or type(target).__name__
    return "" if name == "<lambda>" else str(name)
