"""Makes one call of a tool, with what the program puts around it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphd.errors import GraphBubbleUp
from graphd.messages import from_dict
from graphd.prebuilt.injected import ToolRuntime, build_runtime
from graphd.prebuilt.tool import Tool, current_call
from graphd.prebuilt.tool_errors import Explain
from graphd.prebuilt.tool_results import is_answer, read_answers, read_content
from graphd.prebuilt.traced_tool import trace_tool
from graphd.threads import run_in_thread


@dataclass(frozen=True)
class ToolCallRequest:
    """A call of a tool, for a function around it."""

    tool_call: Mapping[str, Any]
    """Its name, args and id, as the model has given them."""
    tool: Any
    """The tool: LangChain's, or a Tool of graphd. None when there is none of the name."""
    state: Any
    runtime: ToolRuntime

    def override(self, **changes: Any) -> ToolCallRequest:
        """A copy with another tool_call, tool or state."""
        return replace(self, **changes)


WrapToolCall = Callable[[ToolCallRequest, Callable[[ToolCallRequest], Any]], Any]
"""Gets a request and the function that makes the call; returns a tool message or a command."""

AsyncWrapToolCall = Callable[[ToolCallRequest, Callable[[ToolCallRequest], Awaitable[Any]]], Awaitable[Any]]
"""The same for async code."""


@dataclass(frozen=True)
class ToolCaller:
    """Calls tools by their names, and makes messages of what comes of it."""

    tools: Mapping[str, Tool]
    messages_key: str
    explain: Explain
    wrap: WrapToolCall | None
    awrap: AsyncWrapToolCall | None

    async def answer(self, call: Mapping[str, Any], state: Any, as_list: bool) -> Any:
        """The message or command that answers a call, or a list of them."""
        tool = self.tools.get(call["name"])
        offered = None if tool is None else (tool.source if hasattr(tool.source, "invoke") else tool)
        runtime = build_runtime(ToolRuntime, state, str(call["id"]))
        try:
            return await self._make_call(ToolCallRequest(call, offered, state, runtime), as_list)
        except GraphBubbleUp:
            raise
        except Exception as error:
            return build_message(call, self.explain(error), "error")

    async def _make_call(self, request: ToolCallRequest, as_list: bool) -> Any:
        if self.awrap is not None:
            return _check_wrapped(await self.awrap(request, lambda r: self._call_tool(r, as_list)))
        if self.wrap is None:
            return await self._call_tool(request, as_list)
        wrap, loop = self.wrap, asyncio.get_running_loop()

        def call_tool(changed: ToolCallRequest) -> Any:
            return asyncio.run_coroutine_threadsafe(self._call_tool(changed, as_list), loop).result()

        return _check_wrapped(await run_in_thread(wrap, request, call_tool))

    async def _call_tool(self, request: ToolCallRequest, as_list: bool) -> Any:
        call = request.tool_call
        if request.tool is None:
            text = f"Error: {call['name']} is not a valid tool, try one of [{', '.join(self.tools)}]."
            return build_message(call, text, "error")
        token = current_call.set((request.state, str(call["id"])))
        try:
            tool = self._find_tool(request)
            return await trace_tool(tool, call, lambda: self._read_answer(tool, call, as_list))
        except GraphBubbleUp:
            raise
        except Exception as error:
            return build_message(call, self.explain(error), "error")
        finally:
            current_call.reset(token)

    async def _read_answer(self, tool: Tool, call: Mapping[str, Any], as_list: bool) -> Any:
        result = await _run_tool(tool, call)
        answers = read_answers(result, call, self.messages_key, as_list)
        if answers is None:
            return build_message(call, read_content(result), "success")
        return answers if len(answers) > 1 else answers[0]

    def _find_tool(self, request: ToolCallRequest) -> Tool:
        """The tool of the request, which may be another than that of the name."""
        known = self.tools.get(request.tool_call["name"])
        return known if known is not None and request.tool in (known, known.source) else Tool.of(request.tool)


def build_message(call: Mapping[str, Any], content: Any, status: str) -> Any:
    """The message that answers a call."""
    fields = {"content": content, "name": call["name"], "tool_call_id": call["id"], "status": status}
    return from_dict({"type": "tool", **fields})


def _check_wrapped(result: Any) -> Any:
    if is_answer(result) or (isinstance(result, list) and result and all(map(is_answer, result))):
        return result
    raise TypeError(f"wrap_tool_call: it returned {result!r:.200}; want a tool message or a command")


async def _run_tool(tool: Tool, call: Mapping[str, Any]) -> Any:
    arguments = dict(call.get("args") or {})
    if tool.is_async:
        return await tool.call(**arguments)
    return await run_in_thread(lambda: tool.call(**arguments))


__all__ = ["AsyncWrapToolCall", "ToolCallRequest", "ToolCaller", "WrapToolCall", "build_message"]
