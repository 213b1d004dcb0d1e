"""What a stream yields for an item, and what invoke makes of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphd.client.translate import FINAL, Item
from graphd.constants import INTERRUPT
from graphd.types import GraphOutput

MODES = ("values", "updates", "checkpoints", "tasks", "debug", "messages", "custom")


class Shape:
    """The form of the items: it depends on how the modes were asked for."""

    def __init__(self, given: str | Sequence[str] | None, *, subgraphs: bool, version: str) -> None:
        self._several = not (given is None or isinstance(given, str))
        chosen: Sequence[str] = ["updates"] if given is None else [given] if isinstance(given, str) else list(given)
        for mode in chosen:
            if mode not in (*MODES, FINAL):
                raise ValueError(f"unknown stream mode {mode!r}; there are {', '.join(MODES)}")
        if version not in ("v1", "v2"):
            raise ValueError(f"unknown version {version!r}; there are v1 and v2")
        self.modes, self.version = tuple(chosen), version
        self._subgraphs = subgraphs

    def show(self, item: Item) -> Any:
        """What to yield."""
        if item.mode == FINAL:
            return FINAL, (item.data, item.interrupts)
        if self.version == "v2":
            part: dict[str, Any] = {"type": item.mode, "ns": item.levels, "data": item.data}
            if item.mode == "values":
                part["data"] = without_questions(item.data)
                part["interrupts"] = item.interrupts
            return part
        if self._subgraphs:
            return (item.levels, item.mode, item.data) if self._several else (item.levels, item.data)
        return (item.mode, item.data) if self._several else item.data


def without_questions(state: Any) -> Any:
    """A state without its open questions."""
    return {k: v for k, v in state.items() if k != INTERRUPT} if isinstance(state, dict) else state


class Collector:
    """Makes the result of invoke from the items of a stream."""

    def __init__(self, given: str | Sequence[str], version: str, *, nested: bool) -> None:
        self._values_only = given == "values"
        self._version, self._several = version, not isinstance(given, str)
        wanted = [given] if isinstance(given, str) else list(given)
        self.modes = [FINAL] if self._values_only and not nested else wanted
        self._latest: Any = None
        self._questions: dict[str, Any] = {}
        self._parts: list[Any] = []

    def add(self, part: tuple[str, Any]) -> None:
        """Takes the next item."""
        mode, data = part
        if not self._values_only:
            self._parts.append(part if self._several else data)
            return
        if mode == FINAL:
            self._latest, self._questions = data[0], {q.id: q for q in data[1]}
            return
        if isinstance(data, dict) and INTERRUPT in data:
            self._questions |= {q.id: q for q in data[INTERRUPT]}
        rest = without_questions(data)
        self._latest = rest if rest or self._latest is None else self._latest

    def result(self) -> Any:
        """What invoke returns."""
        if not self._values_only:
            return self._parts
        questions = tuple(self._questions.values())
        if self._version == "v2":
            return GraphOutput(self._latest, questions)
        if questions and isinstance(self._latest, dict):
            return {**self._latest, INTERRUPT: list(questions)}
        return {INTERRUPT: list(questions)} if questions else self._latest
