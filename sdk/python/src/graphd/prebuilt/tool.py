"""Functions that a model can call, ours and LangChain's."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from graphd.prebuilt.arguments import WrongArgumentsError, build_check
from graphd.prebuilt.injected import Fill, find_injections
from graphd.values.command import Command


@dataclass(frozen=True)
class Tool:
    """A function that a model can call by name."""

    name: str
    call: Callable[..., Any]
    is_async: bool
    source: Any = None
    """What the tool was made of: a function, or a tool of LangChain."""
    is_filled: bool = False
    """The graph fills in some of the arguments."""

    @property
    def return_direct(self) -> bool:
        """The result of the tool is the answer of the agent."""
        return bool(getattr(self.source, "return_direct", False))

    @property
    def is_function(self) -> bool:
        """No tool of LangChain is called."""
        return not hasattr(self.source, "invoke")

    @property
    def description(self) -> str:
        """What the function says of itself."""
        return (inspect.getdoc(self.source) or "") if self.source is not None else ""

    @classmethod
    def of(cls, given: Any) -> Tool:
        """Reads a function, a Tool, or a tool of LangChain."""
        if isinstance(given, Tool):
            return given
        if callable(getattr(given, "invoke", None)) and hasattr(given, "model_copy"):
            return _wrap_langchain_tool(given)
        if not callable(given):
            raise TypeError(f"a tool must be a function; got {given!r}")
        return _wrap_function(given)


class ToolInvocationError(Exception):
    """A model called a tool with arguments that it does not take."""

    def __init__(self, tool: str, arguments: Mapping[str, Any], problem: str) -> None:
        self.message = (
            f"Error invoking tool '{tool}' with kwargs {dict(arguments)} with error:\n {problem}\n "
            "Please fix the error and try again."
        )
        super().__init__(self.message)


current_call: ContextVar[tuple[Any, str] | None] = ContextVar("graphd_tool_call", default=None)
"""The state and the id of the tool call that is being made."""


def _fill_arguments(fills: Mapping[str, Fill], arguments: Mapping[str, Any]) -> dict[str, Any]:
    if (call := current_call.get()) is None:
        return dict(arguments)
    return {**arguments, **{name: fill(*call) for name, fill in fills.items()}}


def _wrap_function(function: Callable[..., Any]) -> Tool:
    fills = find_injections(function)
    check = build_check(function, fills)

    def prepared(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            checked = check(arguments)
        except WrongArgumentsError as error:
            raise ToolInvocationError(function.__name__, arguments, str(error)) from None
        return _fill_arguments(fills, {k: v for k, v in arguments.items() if k in fills} | checked)

    if inspect.iscoroutinefunction(function):

        async def acall(**arguments: Any) -> Any:
            return await function(**prepared(arguments))

        return Tool(function.__name__, acall, True, function, bool(fills))
    return Tool(function.__name__, lambda **arguments: function(**prepared(arguments)), False, function, bool(fills))


def _wrap_langchain_tool(tool: Any) -> Tool:
    function, coroutine = getattr(tool, "func", None), getattr(tool, "coroutine", None)
    fills = find_injections(function or coroutine or tool._run)
    carrier, given_tool = _carrier_class(), tool
    tool = _wrap_with_carrier(tool, function, coroutine, carrier)

    def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
        filled = _fill_arguments(fills, arguments)
        if (call := current_call.get()) is None:
            return filled
        return {"type": "tool_call", "name": tool.name, "id": call[1], "args": filled}

    def checked(arguments: Mapping[str, Any], error: Exception) -> Exception:
        if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
            return error
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors() if e["loc"][0] not in fills)
        return ToolInvocationError(tool.name, arguments, "\n".join(problems))

    def unwrapped(result: Any) -> Any:
        if isinstance(result, list):
            return [unwrapped(part) for part in result]
        return result.command if isinstance(result, carrier) else result

    async def acall(**arguments: Any) -> Any:
        try:
            result = await tool.ainvoke(given(arguments))
        except Exception as error:
            raise checked(arguments, error) from error
        return unwrapped(result)

    def call(**arguments: Any) -> Any:
        try:
            result = tool.invoke(given(arguments))
        except Exception as error:
            raise checked(arguments, error) from error
        return unwrapped(result)

    if coroutine is not None and function is None:
        return Tool(tool.name, acall, True, given_tool, bool(fills))
    return Tool(tool.name, call, False, given_tool, bool(fills))


@functools.cache
def _carrier_class() -> Any:
    """A class whose objects LangChain hands over as they are; it would make
    text of our commands."""
    base = importlib.import_module("langchain_core.messages.tool").ToolOutputMixin

    class Carrier(base):  # type: ignore[misc, valid-type]
        def __init__(self, command: Command[Any]) -> None:
            self.command = command

    return Carrier


def _wrap_with_carrier(tool: Any, function: Any, coroutine: Any, carrier: Any) -> Any:
    """The same tool, whose commands are carried past LangChain."""

    def carried(result: Any) -> Any:
        if isinstance(result, list):
            return [carried(part) for part in result]
        return carrier(result) if isinstance(result, Command) else result

    changed: dict[str, Any] = {}
    if function is not None:

        @functools.wraps(function)
        def call(*positional: Any, **named: Any) -> Any:
            return carried(function(*positional, **named))

        changed["func"] = call
    if coroutine is not None:

        @functools.wraps(coroutine)
        async def acall(*positional: Any, **named: Any) -> Any:
            return carried(await coroutine(*positional, **named))

        changed["coroutine"] = acall
    return tool.model_copy(update=changed) if changed else tool


__all__ = ["Tool", "ToolInvocationError", "current_call"]
