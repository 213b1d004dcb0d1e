"""Symbols in place of the ids that differ between two plays of a case."""

from __future__ import annotations

import json
import re
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHECKPOINTS = ("cp", "parents", "checkpoint_map")


class Symbols:
    """The symbols of one case: cp1, t2, int3."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._questions: dict[tuple[str, str], str] = {}

    def known(self) -> dict[str, str]:
        """The id of each symbol."""
        asked = {symbol: real for (real, _), symbol in self._questions.items()}
        return {symbol: real for real, symbol in self._ids.items()} | asked

    def symbol(self, kind: str, real: str) -> str:
        """The symbol of a checkpoint (cp) or a task (t)."""
        return self._ids.setdefault(real, f"{kind}{len(self._ids) + 1}")

    def question(self, real: str, value: Any) -> str:
        """The symbol of a question; LangGraph before 1.2.22 gave several of a node the same id."""
        key = (real, json.dumps(value, sort_keys=True))
        return self._questions.setdefault(key, f"int{len(self._questions) + 1}")

    def translate(self, value: Any) -> Any:
        """A value with symbols in place of ids."""
        if isinstance(value, dict) and {"value", "id"} <= value.keys() <= {"value", "id", "response_schema"}:
            return value | {"id": self.question(value["id"], value["value"])}
        if (plain := _overwritten(value)) is not None:
            return self.translate(plain[0])
        if isinstance(value, dict):
            return {self.translate(k): self._translate_field(k, v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.translate(v) for v in value]
        if isinstance(value, str):
            return _UUID.sub(lambda found: self.symbol("t", found.group()), value)
        return value

    def _translate_field(self, key: str, value: Any) -> Any:
        if key == "timestamp":
            return "<ts>"
        if key in _CHECKPOINTS and isinstance(value, str):
            return self.symbol("cp", value)
        if key in _CHECKPOINTS and isinstance(value, dict):
            return {self.translate(ns): self.symbol("cp", real) for ns, real in value.items()}
        return self.translate(value)


def _overwritten(value: Any) -> tuple[Any] | None:
    """The value of an Overwrite: graphd shows it alone (the difference "overwrites show as values")."""
    if type(value).__name__ == "Overwrite":
        return (value.value,)
    if isinstance(value, dict) and list(value) == ["__overwrite__"]:
        return (value["__overwrite__"],)
    return None
