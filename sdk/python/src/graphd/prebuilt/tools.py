"""Runs the tools that a model asks for."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphd import codec
from graphd.constants import END
from graphd.errors import GraphBubbleUp, GraphInterrupt
from graphd.messages import ToolMessage, from_dict, is_message, to_dict
from graphd.prebuilt.tool import Tool, ToolInvocationError, current_call
from graphd.prebuilt.traced_tool import trace_tool
from graphd.runtime.replay import Place
from graphd.runtime.task import current_scope, current_task, scope
from graphd.values.command import Command, Interrupt

Handled = bool | str | Callable[[Exception], str] | type[Exception] | tuple[type[Exception], ...]


def text_of(result: Any) -> str:
    """What a tool returned, as the text that a model reads."""
    return result if isinstance(result, str) else codec.dumps(result)


def explain_arguments(error: Exception) -> str:
    """Tells the model of wrong arguments; any other error fails the node."""
    if isinstance(error, ToolInvocationError):
        return error.message
    raise error


class ToolNode:
    """A node that answers every tool call of the last message.

    The calls run side by side, each in a scope of its own: a tool that asks a
    person gets the answer to its own question, whatever the others do. When
    one asks, the results of those that have ended are kept: they do not run
    again with the answer.
    """

    def __init__(
        self,
        tools: Sequence[Any],
        *,
        name: str = "tools",
        tags: Sequence[str] | None = None,
        handle_tool_errors: Handled = explain_arguments,
        messages_key: str = "messages",
    ) -> None:
        del tags
        self.name, self.messages_key = name, messages_key
        self.tools_by_name = {tool.name: tool for tool in map(Tool.of, tools)}
        self._handled = handle_tool_errors

    async def __call__(self, state: Any, config: Any = None) -> Any:
        """Runs the node."""
        calls, as_list = self._find_calls(state)
        seen = state["state"] if isinstance(state, Mapping) and "__type" in state else state
        outcomes = await asyncio.gather(*(self._run_call(call, seen) for call in calls), return_exceptions=True)
        questions: list[Interrupt] = []
        if any(isinstance(outcome, GraphInterrupt) for outcome in outcomes):
            await asyncio.gather(*(_record_result(c, o) for c, o in zip(calls, outcomes, strict=True)))
            _order_questions(calls)
        for outcome in outcomes:
            if isinstance(outcome, GraphInterrupt):
                questions.extend(outcome.interrupts)
            elif isinstance(outcome, BaseException):
                raise outcome
        if questions:
            raise GraphInterrupt(questions)
        return self._combine_outcomes(list(outcomes), as_list)

    def _find_calls(self, state: Any) -> tuple[list[Mapping[str, Any]], bool]:
        if isinstance(state, Mapping) and state.get("__type") == "tool_call_with_context":
            return [state["tool_call"]], False
        if isinstance(state, list) and state and isinstance(state[-1], Mapping) and "args" in state[-1]:
            return state, False  # the calls themselves, as a Send hands them over
        listed = state if isinstance(state, list) else _read_field(state, self.messages_key)
        last = next((m for m in reversed(listed or []) if _read_field(m, "type") == "ai"), None)
        if last is None:
            raise ValueError("there is no AI message whose tools could be run")
        return list(_read_field(last, "tool_calls") or []), isinstance(state, list)

    async def _run_call(self, call: Mapping[str, Any], state: Any) -> Any:
        tool = self.tools_by_name.get(call["name"])
        if tool is None:
            known = ", ".join(sorted(self.tools_by_name))
            return self._build_message(
                call, f"Error: {call['name']} is not a valid tool, try one of [{known}].", "error"
            )
        with scope(str(call["id"])):
            if (kept := _recorded_result()) is not None:
                return kept
            token = current_call.set((state, str(call["id"])))
            try:
                return await trace_tool(tool, call, lambda: self._answer_call(tool, call))
            except GraphBubbleUp:
                raise
            except Exception as error:
                return self._build_message(call, self._explain_error(error), "error")
            finally:
                current_call.reset(token)

    async def _answer_call(self, tool: Tool, call: Mapping[str, Any]) -> Any:
        result = await _run_tool(tool, call)
        if isinstance(result, Command) or _read_field(result, "type") == "tool":
            return result
        return self._build_message(call, text_of(result), "success")

    def _explain_error(self, error: Exception) -> str:
        handled = self._handled
        if handled is True:
            return f"Error: {error!r}\n Please fix your mistakes."
        if isinstance(handled, str):
            return handled
        if isinstance(handled, (type, tuple)) and isinstance(error, handled):
            return f"Error: {error!r}\n Please fix your mistakes."
        if callable(handled) and not isinstance(handled, type):
            return handled(error)
        raise error

    @staticmethod
    def _build_message(call: Mapping[str, Any], content: str, status: str) -> ToolMessage:
        return ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status)

    def _combine_outcomes(self, outcomes: list[Any], as_list: bool) -> Any:
        if not any(isinstance(o, Command) for o in outcomes):
            return outcomes if as_list else {self.messages_key: outcomes}
        return [
            o if isinstance(o, Command) else Command(update=[o] if as_list else {self.messages_key: [o]})
            for o in outcomes
        ]


_RESULT = "__result__"


def _recorded_result() -> Any:
    """The result that the call had before another one asked, or None."""
    if (task := current_task()) is None:
        return None
    _, known, value = task.replay.look_up_memo(current_scope(), _RESULT)
    if not known:
        return None
    task.replay.skip_scope(current_scope())
    return from_dict(value)


async def _record_result(call: Mapping[str, Any], outcome: Any) -> None:
    """Records the result of a call; a call that asks or failed has none."""
    task = current_task()
    if task is not None and is_message(outcome):
        with scope(str(call["id"])):
            await task.host.arecord_memo(Place(current_scope(), _RESULT, 0), to_dict(outcome))


def _order_questions(calls: Sequence[Mapping[str, Any]]) -> None:
    if (task := current_task()) is None:
        return
    scopes = []
    for call in calls:
        with scope(str(call["id"])):
            scopes.append(current_scope())
    task.replay.order_questions(scopes)


_threads = ThreadPoolExecutor(32, thread_name_prefix="graphd-tool")


async def _run_tool(tool: Tool, call: Mapping[str, Any]) -> Any:
    arguments = dict(call.get("args") or {})
    if tool.is_async:
        return await tool.call(**arguments)
    variables = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, lambda: variables.run(lambda: tool.call(**arguments)))


def _read_field(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    return getattr(value, key, None)


def tools_condition(state: Any, messages_key: str = "messages") -> str:
    """Routes to "tools" when the last message asks for tools, else to END."""
    listed = state if isinstance(state, list) else _read_field(state, messages_key)
    if not listed:
        raise ValueError(f"there is no message under {messages_key!r}")
    return "tools" if _read_field(listed[-1], "tool_calls") else END


__all__ = ["ToolNode", "explain_arguments", "tools_condition"]
