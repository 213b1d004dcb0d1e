"""Where an agent goes after its model, after its tools, and after a hook."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphd.constants import END
from graphd.prebuilt.agent_model import read_key
from graphd.values.command import Send

AGENT, TOOLS, BEFORE, AFTER, STRUCTURE = (
    "agent",
    "tools",
    "pre_model_hook",
    "post_model_hook",
    "generate_structured_response",
)


@dataclass(frozen=True)
class AgentRoutes:
    """The routers of one agent."""

    entry: str
    """The node that a round begins with."""
    is_structured: bool
    """The end is an answer in the form of a schema."""
    sends_calls: bool
    """Each tool call is a task of its own."""
    sends_state: bool
    """A tool call gets the state along: some tool has arguments of it."""
    direct: Collection[str]
    """The tools whose results end the run."""

    def after_model(self, state: Any) -> Any:
        """To the tools that the model asks for, or to the end."""
        calls = _calls_of(read_key(state, "messages")[-1])
        if not calls:
            return self.end
        return self._send_calls(calls, state) if self.sends_calls else TOOLS

    def after_hook(self, state: Any) -> Any:
        """To the tool calls without an answer, back to the model when the last message is a tool's, or to the end."""
        messages = read_key(state, "messages")
        answered = {read_key(m, "tool_call_id") for m in messages if read_key(m, "type") == "tool"}
        last = next(m for m in reversed(messages) if read_key(m, "type") == "ai")
        pending = [call for call in _calls_of(last) if call["id"] not in answered]
        if pending:
            return self._send_calls(pending, state)
        return self.entry if read_key(messages[-1], "type") == "tool" else self.end

    def after_tools(self, state: Any) -> str:
        """Back to the model, or to the end when a tool has said what there is to say."""
        for message in reversed(read_key(state, "messages")):
            if read_key(message, "type") != "tool":
                # Another task may run the tool, and its result is not in this state.
                return END if any(call["name"] in self.direct for call in _calls_of(message)) else self.entry
            if read_key(message, "name") in self.direct:
                return END
        return self.entry

    @property
    def end(self) -> str:
        """Where a round without tool calls leads."""
        return STRUCTURE if self.is_structured else END

    def _send_calls(self, calls: Sequence[Mapping[str, Any]], state: Any) -> list[Send]:
        if not self.sends_state:
            return [Send(TOOLS, [call]) for call in calls]
        return [Send(TOOLS, {"__type": "tool_call_with_context", "tool_call": call, "state": state}) for call in calls]


def _calls_of(message: Any) -> Sequence[Mapping[str, Any]]:
    return (read_key(message, "tool_calls") or []) if read_key(message, "type") == "ai" else []


__all__ = ["AFTER", "AGENT", "BEFORE", "STRUCTURE", "TOOLS", "AgentRoutes"]
