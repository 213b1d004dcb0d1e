"""What a person has decided about a call of a tool, and what the model is told of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphd.prebuilt.tool_calls import build_message
from graphd.prebuilt.tool_results import is_answer, read_content
from graphd.values.command import Command

DecisionType = Literal["approve", "edit", "reject", "respond"]


@dataclass(frozen=True)
class ToolDecision:
    """What is to be done about a call of a tool."""

    type: DecisionType
    name: str
    """The tool."""
    args: Mapping[str, Any]
    """With which arguments it is to be called."""
    call_id: str
    """The call of the model."""
    asked_args: Mapping[str, Any] = field(repr=False)
    """The arguments that the model gave."""
    message: str = ""
    """Why it is rejected, or what is said in place of a result."""

    @property
    def is_run(self) -> bool:
        """The tool is to be called."""
        return self.type in ("approve", "edit")

    @property
    def is_changed(self) -> bool:
        """A person has changed the arguments."""
        return self.is_run and self.args != self.asked_args

    @property
    def call(self) -> dict[str, Any]:
        """The call to make, as messages have it."""
        return {"type": "tool_call", "name": self.name, "args": dict(self.args), "id": self.call_id}

    def build_answer(self, result: Any = None) -> Any:
        """The message that answers the call of the model: with the result of the tool, or why there is none.

        Of a call that a person has changed it says so, for the model knows only its own.
        """
        if self.type == "respond":
            return build_message(self.call, self.message, "success")
        if self.type == "reject":
            return build_message(self.call, self._explain_rejection(), "error")
        return self.explain_change(build_message(self.call, read_content(result), "success"))

    def explain_change(self, answer: Any) -> Any:
        """A tool message, a command, or a list of them, which says of a changed call that it was changed."""
        if not self.is_changed:
            return answer
        if isinstance(answer, list):
            return [self.explain_change(one) for one in answer]
        if not isinstance(answer, Command):
            return self._add_notice(answer)
        if isinstance(answer.update, list):
            return replace(answer, update=[self._add_notice(one) for one in answer.update])
        if isinstance(answer.update, Mapping):
            update = {
                key: [self._add_notice(one) for one in value] if isinstance(value, list) else self._add_notice(value)
                for key, value in answer.update.items()
            }
            return replace(answer, update=update)
        return answer

    def _add_notice(self, message: Any) -> Any:
        """The message, with the notice before its content if it answers the call; anything else as it is."""
        if not is_answer(message) or getattr(message, "tool_call_id", None) != self.call_id:
            return message
        notice, told = self._explain_edit(), copy.copy(message)
        if isinstance(message.content, list):
            told.content = [{"type": "text", "text": notice}, *message.content]
        else:
            told.content = f"{notice}\n{message.content}"
        return told

    def _explain_edit(self) -> str:
        given = json.dumps(dict(self.args), ensure_ascii=False)
        return (
            f"A person has changed this call of {self.name} before it was made. "
            f"It was made with these arguments, and is not to be repeated with others: {given}"
        )

    def _explain_rejection(self) -> str:
        told = f"A person has rejected this call of {self.name}, and it was not made. "
        return told + (self.message or "It is not to be repeated unless the user asks for it.")


__all__ = ["DecisionType", "ToolDecision"]
