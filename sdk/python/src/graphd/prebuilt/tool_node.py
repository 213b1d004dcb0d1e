"""Runs the tools that a model asks for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphd.compatibility.imports import explain_absent_names
from graphd.constants import END
from graphd.errors import GraphInterrupt
from graphd.messages import from_dict, is_message, to_dict
from graphd.prebuilt.injected import InjectedState, InjectedStore, ToolRuntime
from graphd.prebuilt.tool import Tool
from graphd.prebuilt.tool_calls import AsyncWrapToolCall, ToolCaller, ToolCallRequest, WrapToolCall
from graphd.prebuilt.tool_errors import Handled, build_explain, explain_arguments
from graphd.prebuilt.tool_results import combine_answers
from graphd.runtime.replay import Place
from graphd.runtime.task import current_scope, current_task, scope
from graphd.threads import begin_in_thread
from graphd.values.command import Interrupt


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
        wrap_tool_call: WrapToolCall | None = None,
        awrap_tool_call: AsyncWrapToolCall | None = None,
    ) -> None:
        """Makes the node.

        ``handle_tool_errors`` says which errors of tools become messages to the model: True for all, False for none,
        classes, the text of the message, or a function that makes it. ``wrap_tool_call`` is called around each call,
        and may change the call, make it several times, or answer in its place; it is called in a thread.
        ``awrap_tool_call`` is the same as a coroutine function, and comes first.
        """
        del tags
        self.name, self.messages_key = name, messages_key
        self.tools_by_name = {tool.name: tool for tool in map(Tool.of, tools)}
        self._caller = ToolCaller(
            self.tools_by_name, messages_key, build_explain(handle_tool_errors), wrap_tool_call, awrap_tool_call
        )

    def invoke(self, input: Any, config: Any = None) -> Any:
        """Runs the tools, in a graph or outside of one; ``ainvoke`` says with what.

        It waits on the calling thread, which may be that of a running loop.
        """
        return _run_coroutine(self.ainvoke(input, config))

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        """Runs the tools that a state, a list of messages or a list of tool calls asks for.

        Plain tools run in threads, ``max_concurrency`` of the config at a time.

        Returns what they answer, as a list of messages for a list of messages, otherwise as an update under
        ``messages_key``; with commands among it, as a list of updates and commands. ValueError says that there is no
        AI message. Outside of a graph a tool can't ask people, and gets no store.
        """
        calls, as_list = self._find_calls(input)
        seen = input["state"] if isinstance(input, Mapping) and "__type" in input else input
        slots = asyncio.Semaphore(_read_concurrency(config) or len(calls) or 1)
        outcomes = await asyncio.gather(
            *(self._run_call(call, seen, as_list, slots) for call in calls), return_exceptions=True
        )
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
        answers = [answer for outcome in outcomes for answer in (outcome if isinstance(outcome, list) else [outcome])]
        return combine_answers(answers, self.messages_key, as_list)

    __call__ = ainvoke

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

    async def _run_call(self, call: Mapping[str, Any], state: Any, as_list: bool, slots: asyncio.Semaphore) -> Any:
        with scope(str(call["id"])):
            if (kept := _recorded_result()) is not None:
                return kept
            tool = self.tools_by_name.get(call["name"])
            async with contextlib.nullcontext() if tool is not None and tool.is_async else slots:
                return await self._caller.answer(call, state, as_list)


def _read_concurrency(config: Any) -> int | None:
    """How many plain tools may run at a time, None for all: what the config of the call or of the node says."""
    task = current_task()
    given = (config or {}).get("max_concurrency") or (task.config.get("max_concurrency") if task else None)
    return None if given is None else int(given)


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


def _run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, on a loop of its own. The thread may have a loop that is running."""
    return begin_in_thread(asyncio.run, coroutine).result()


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


if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = [
    "InjectedState",
    "InjectedStore",
    "ToolCallRequest",
    "ToolNode",
    "ToolRuntime",
    "explain_arguments",
    "tools_condition",
]
