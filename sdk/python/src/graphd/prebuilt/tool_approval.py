"""Asks people about calls of tools, one question for each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

from graphd.errors import GraphInterrupt
from graphd.prebuilt.argument_schema import Json, read_argument_schema
from graphd.prebuilt.decision_schema import build_decision_schema
from graphd.prebuilt.tool import Tool
from graphd.prebuilt.tool_calls import ToolCallRequest
from graphd.prebuilt.tool_decision import DecisionType, ToolDecision
from graphd.runtime.ask import OnExpiry, interrupt
from graphd.runtime.drift import Drift, check_drift
from graphd.runtime.task import scope
from graphd.values.command import Interrupt
from graphd.values.people import People
from graphd.values.steps import Priority, Step, check_priority

PROFILE = "tool-approval/1"
"""What ``value["profile"]`` of the questions is: clients know by it what value and answer look like."""

REASON = "tool_call"
ALL_DECISIONS: tuple[DecisionType, ...] = get_args(DecisionType)


class ToolApproval:
    """Lets people decide about each call of these tools before it is made.

    A question has the reason "tool_call" and shows ``{"profile": "tool-approval/1", "tool_call_id": …, "name": …,
    "args": …}``. Its answer is one of::

        {"type": "approve"}
        {"type": "edit", "args": {…}}           # other arguments, all of them; the tool stays
        {"type": "reject", "message": "why"}    # the message may be left out
        {"type": "respond", "message": "…"}     # in place of a result

    The server refuses any other answer, and other arguments than the tool takes: InvalidResumeError names the place,
    and the question stays open. Calls of other tools are not asked about. In a node of tools::

        approval = ToolApproval([pay])
        ToolNode([pay, search], wrap_tool_call=approval.wrap_tool_call)
    """

    def __init__(
        self,
        tools: Iterable[Any] | Mapping[str, Mapping[str, Any] | None],
        *,
        allowed_decisions: Sequence[DecisionType] = ALL_DECISIONS,
        message: str | Callable[[Mapping[str, Any]], str] = "",
        assignees: tuple[str, ...] = (),
        people: People | None = None,
        priority: Priority | None = None,
        steps: Sequence[Step] = (),
        ttl: float | timedelta | None = None,
        on_expiry: OnExpiry | None = None,
        default: Mapping[str, Any] | None = None,
        undo: float | timedelta | None = None,
        drift: Drift | None = None,
        drift_ignore: Sequence[str] = (),
    ) -> None:
        """Makes the policy.

        ``tools`` are functions or tools of LangChain, or a dict of the JSON Schemas of arguments by the names of tools,
        where None takes any. ``message`` is the text of the question, or a function that makes it of the call. The rest
        is that of ``interrupt``; a ``default`` is a decision. The schema of a question has that of the tool: where the
        tool changes while people are asked about it, ``drift_ignore=["schema"]`` takes their answers all the same.
        """
        self._arguments = _read_tools(tools)
        self._allowed = _check_allowed(allowed_decisions)
        self._message = message
        check_priority(priority)
        if default is not None and not (isinstance(default, Mapping) and default.get("type") in self._allowed):
            raise ValueError(f"default is {default!r}: want a decision of the type {' or '.join(self._allowed)}")
        self._options: dict[str, Any] = {
            "assignees": assignees,
            "people": people,
            "priority": priority,
            "steps": steps,
            "ttl": ttl,
            "on_expiry": on_expiry,
            "default": default,
            "undo": undo,
            "drift": drift,
            "drift_ignore": check_drift(drift, drift_ignore),
        }

    def decide(self, calls: Iterable[Mapping[str, Any]]) -> list[ToolDecision]:
        """What is to be done about calls of tools, in their order: those of a message, as ``message.tool_calls``.

        All questions are asked at once, and the node goes on when all are answered: a rejected call leaves the others
        as they are. What stands before this in a node runs again with the answers. Raises InterruptDismissed or
        InterruptExpired when no answer will come.
        """
        decided: list[ToolDecision] = []
        questions: list[Interrupt] = []
        for call in calls:
            with scope(_read_id(call)):
                try:
                    decided.append(self._decide_one(call))
                except GraphInterrupt as asking:  # the task keeps what was asked
                    questions.extend(asking.interrupts)
        if questions:
            raise GraphInterrupt(questions)
        return decided

    def wrap_tool_call(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Any]) -> Any:
        """Decides about a call of a ToolNode, and makes it."""
        if request.tool is None:  # there is none of that name, and the model is told
            return execute(request)
        decision = self._decide_one(request.tool_call)
        if not decision.is_run:
            return decision.build_answer()
        return decision.explain_change(execute(_apply(decision, request)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Like wrap_tool_call, as a coroutine."""
        if request.tool is None:
            return await execute(request)
        decision = self._decide_one(request.tool_call)
        if not decision.is_run:
            return decision.build_answer()
        return decision.explain_change(await execute(_apply(decision, request)))

    def _decide_one(self, call: Mapping[str, Any]) -> ToolDecision:
        """The decision about a call, in the scope of the call."""
        name, given, call_id = call["name"], dict(call.get("args") or {}), _read_id(call)
        if name not in self._arguments:
            return ToolDecision("approve", name, given, call_id, given)
        answer = interrupt(
            {"profile": PROFILE, "tool_call_id": call_id, "name": name, "args": given},
            key="approval",
            reason=REASON,
            message=self._message(call) if callable(self._message) else self._message or f"Call the tool {name}?",
            response_schema=build_decision_schema(self._allowed, name, self._arguments[name]),
            **self._options,
        )
        args = answer["args"] if answer["type"] == "edit" else given
        return ToolDecision(answer["type"], name, args, call_id, given, answer.get("message", ""))


def _read_tools(tools: Any) -> Mapping[str, Json]:
    """The schemas of arguments by the names of tools."""
    if isinstance(tools, Mapping):
        found: Mapping[str, Json] = {
            name: _read_schema(name, {} if given is None else given) for name, given in tools.items()
        }
    else:
        found = {tool.name: read_argument_schema(tool) for tool in map(Tool.of, tools)}
    if not found:
        raise ValueError("tools is empty: want at least one tool to ask about")
    return found


def _read_schema(name: str, given: Any) -> Json:
    if not isinstance(given, Mapping):
        raise TypeError(f"tools: the schema of {name!r} is {given!r}; want a dict, or None for any arguments")
    return {"type": "object", **given}


def _check_allowed(given: Sequence[Any]) -> tuple[DecisionType, ...]:
    unknown = [given] if isinstance(given, str) else [one for one in given if one not in ALL_DECISIONS]
    if unknown or not given:
        wanted = ", ".join(ALL_DECISIONS)
        raise ValueError(f"allowed_decisions is {given!r}: want a list of at least one of {wanted}")
    return tuple(dict.fromkeys(given))


def _read_id(call: Mapping[str, Any]) -> str:
    """The id of a call, which tells it from others."""
    if not call.get("id"):
        raise ValueError(f"the call of the tool {call['name']!r} has no id, and a model needs it with the result")
    return str(call["id"])


def _apply(decision: ToolDecision, request: ToolCallRequest) -> ToolCallRequest:
    """The request with the arguments of the decision."""
    if not decision.is_changed:
        return request
    return request.override(tool_call={**request.tool_call, "args": dict(decision.args)})


__all__ = ["ALL_DECISIONS", "PROFILE", "REASON", "ToolApproval"]
