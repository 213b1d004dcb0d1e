"""Which questions get which answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from graphd import codec
from graphd.remote import Dismissal, Question

_LONGEST = 400  # characters of a value that a text shows


@dataclass
class Rule:
    """Questions that fit all of these, and their answer."""

    node: str | None
    message: str | re.Pattern[str] | None
    graph: str | None
    reason: str | None
    answer: Any
    times: int | None
    optional: bool
    used: int = field(default=0, init=False)

    def fits(self, question: Question) -> bool:
        """Whether the rule is for a question, and not used up."""
        if self.times is not None and self.used >= self.times:
            return False
        exact = ((self.node, question.node), (self.graph, question.graph), (self.reason, question.reason))
        if any(wanted is not None and wanted != here for wanted, here in exact):
            return False
        if isinstance(self.message, re.Pattern):
            return self.message.search(question.message) is not None
        return self.message is None or self.message in question.message

    def give_answer(self, question: Question) -> Any:
        """The answer to a question, a Dismissal among them."""
        self.used += 1
        if isinstance(self.answer, Dismissal):
            return Dismissal(self.answer.reason, question.question_id)
        return self.answer(question) if callable(self.answer) else self.answer

    def __str__(self) -> str:
        named = (("node", self.node), ("message", self.message), ("graph", self.graph), ("reason", self.reason))
        given = ", ".join(f"{name}={value!r}" for name, value in named if value is not None) or "any question"
        limit = "" if self.times is None else f" of {self.times}"
        return f"{given}: used {self.used}{limit} times"


def describe_question(question: Question) -> str:
    """What a person who writes a rule has to know of a question."""
    lines = [f"node {question.node!r} of graph {question.graph!r}, thread {question.thread_id!r}"]
    lines += [f"message: {question.message!r}"] if question.message else []
    lines += [f"reason: {question.reason!r}"] if question.reason else []
    lines += [f"value: {_shorten(question.value)}"]
    lines += [f"schema of the answer: {_shorten(question.schema)}"] if question.schema is not None else []
    return "\n  ".join(lines)


def _shorten(value: Any) -> str:
    text = codec.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
