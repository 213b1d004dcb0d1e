"""What becomes of an error of a tool: a message to the model, or the failure of the node."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin, get_type_hints

from graphd.prebuilt.tool import ToolInvocationError

Handled = bool | str | Callable[..., str] | type[Exception] | tuple[type[Exception], ...]
Explain = Callable[[Exception], str]


def explain_arguments(error: ToolInvocationError) -> str:
    """Tells the model of wrong arguments; any other error fails the node."""
    return error.message


def build_explain(handled: Handled) -> Explain:
    """The function that makes a text for the model of an error, or raises it.

    A function gets the errors that its argument is annotated with, all errors without an annotation.
    """
    kinds: tuple[type[Exception], ...] = (Exception,)
    if isinstance(handled, (bool, str)):
        kinds = () if handled is False or handled == "" else kinds
    elif isinstance(handled, (type, tuple)):
        kinds = handled if isinstance(handled, tuple) else (handled,)
    else:
        kinds = _annotated_kinds(handled)

    def explain(error: Exception) -> str:
        if not isinstance(error, kinds):
            raise error
        if isinstance(handled, str):
            return handled
        if callable(handled) and not isinstance(handled, type):
            return handled(error)
        return f"Error: {error!r}\n Please fix your mistakes."

    return explain


def _annotated_kinds(handler: Callable[..., str]) -> tuple[type[Exception], ...]:
    parameters = list(inspect.signature(handler).parameters)
    try:
        hints = get_type_hints(handler if inspect.isroutine(handler) else type(handler).__call__)
    except NameError:  # annotations that can't be read ask for nothing
        hints = {}
    hint = hints.get(parameters[0] if parameters else "", Exception)
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    wrong: list[Any] = [kind for kind in kinds if not (isinstance(kind, type) and issubclass(kind, Exception))]
    if wrong:
        name = getattr(handler, "__name__", type(handler).__name__)
        got = getattr(wrong[0], "__name__", str(wrong[0]))
        raise ValueError(f"handle_tool_errors: {name} takes {got}; want an Exception, or a union of them")
    return kinds


__all__ = ["Handled", "build_explain", "explain_arguments"]
