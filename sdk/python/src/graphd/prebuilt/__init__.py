"""Nodes and helpers that agents need."""

from typing import TYPE_CHECKING

from graphd.compatibility.imports import explain_absent_names
from graphd.prebuilt.chat_agent_executor import create_react_agent
from graphd.prebuilt.history import repair_chat_history, unanswered_tool_calls, validate_chat_history
from graphd.prebuilt.injected import InjectedState, InjectedStore, ToolRuntime
from graphd.prebuilt.interrupt import HumanInterruptConfig
from graphd.prebuilt.review import add_human_in_the_loop
from graphd.prebuilt.tool import Tool, ToolInvocationError
from graphd.prebuilt.tool_approval import ToolApproval
from graphd.prebuilt.tool_decision import ToolDecision
from graphd.prebuilt.tool_node import ToolNode, tools_condition
from graphd.prebuilt.tool_validator import ValidationNode

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = [
    "HumanInterruptConfig",
    "InjectedState",
    "InjectedStore",
    "Tool",
    "ToolApproval",
    "ToolDecision",
    "ToolInvocationError",
    "ToolNode",
    "ToolRuntime",
    "ValidationNode",
    "add_human_in_the_loop",
    "create_react_agent",
    "repair_chat_history",
    "tools_condition",
    "unanswered_tool_calls",
    "validate_chat_history",
]
