"""What a stream yields for an item, and what invoke makes of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphd.client.items import FINAL, Item
from graphd.constants import INTERRUPT
from graphd.values.state import GraphOutput

MODES = ("values", "updates", "checkpoints", "tasks", "debug", "messages", "custom")


class StreamFormat:
    """The form of the items: it depends on how the modes were asked for."""

    def __init__(
        self,
        given: str | Sequence[str] | None,
        *,
        subgraphs: bool,
        version: str,
        printed: str | Sequence[str] = (),
    ) -> None:
        self._several = not (given is None or isinstance(given, str))
        chosen: Sequence[str] = ["updates"] if given is None else [given] if isinstance(given, str) else list(given)
        self._printed = (printed,) if isinstance(printed, str) else tuple(printed)
        for mode in (*chosen, *self._printed):
            if mode not in (*MODES, FINAL):
                raise ValueError(f"unknown stream mode {mode!r}; there are {', '.join(MODES)}")
        if version not in ("v1", "v2"):
            raise ValueError(f"unknown version {version!r}; there are v1 and v2")
        self._chosen, self.version = tuple(chosen), version
        self.modes = tuple(dict.fromkeys((*chosen, *self._printed)))
        self._subgraphs = subgraphs

    def format_item(self, item: Item) -> Iterator[Any]:
        """What to yield for an item; prints it if that was asked for."""
        if item.mode in self._printed:
            where = "".join(f"[{level}]" for level in item.levels)
            print(f"[{item.mode}]{where} {item.data}")
        if item.mode in self._chosen:
            yield self._format_data(item)

    def _format_data(self, item: Item) -> Any:
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


class ResultCollector:
    """Makes the result of invoke from the items of a stream."""

    def __init__(self, given: str | Sequence[str], version: str) -> None:
        self._values_only = given == "values"
        self._version = version
        self.modes: str | Sequence[str] = FINAL if self._values_only else given
        self._latest: Any = None
        self._questions: tuple[Any, ...] = ()
        self._parts: list[Any] = []

    def add_item(self, item: Item, stream_format: StreamFormat) -> None:
        """Takes the next item."""
        parts = list(stream_format.format_item(item))
        if not self._values_only:
            self._parts.extend(parts)
        elif item.mode == FINAL:
            self._latest, self._questions = item.data, item.interrupts

    def final_result(self) -> Any:
        """What invoke returns."""
        if not self._values_only:
            return self._parts
        questions = self._questions
        if self._version == "v2":
            return GraphOutput({} if questions and self._latest is None else self._latest, questions)
        if questions and isinstance(self._latest, dict):
            return {**self._latest, INTERRUPT: list(questions)}
        return {INTERRUPT: list(questions)} if questions else self._latest
