"""How many of the names that LangGraph's documentation imports graphd has where the documentation imports them from."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from name_status import NameStatus

Uses = Mapping[str, Mapping[str, int]]
"""How often each name is imported, by module below langgraph."""


@dataclass(frozen=True)
class Share:
    """What a program that is written after the documentation finds."""

    names: int
    uses: int
    missing: dict[str, int]
    """The uses of each name that is not there, by its path."""

    @property
    def of_names(self) -> float:
        """The part of the names that are there, between 0 and 1."""
        return 1 - len(self.missing) / self.names

    @property
    def of_uses(self) -> float:
        """The same, of the uses."""
        return 1 - sum(self.missing.values()) / self.uses

    def render(self) -> str:
        """The figures, and what is missing, for the page."""
        text = (
            f"The documentation of LangGraph imports {self.names} of these names, {self.uses} times in all, and graphd "
            f"has {100 * self.of_names:.1f} % of the names, for {100 * self.of_uses:.1f} % of the uses"
        )
        if self.missing:
            text += ": all but " + ", ".join(f"`{path}` ({uses})" for path, uses in sorted(self.missing.items()))
        return textwrap.fill(f"{text}.", 138, break_long_words=False, break_on_hyphens=False)


def measure_share(uses: Uses, statuses: list[NameStatus]) -> Share:
    """A name that is in another module of graphd counts as missing: its import fails."""
    found = {s.path for s in statuses if s.state != "not" and s.place == s.owner}
    counts = {f"{module}.{name}": count for module, names in uses.items() for name, count in names.items()}
    missing = {path: count for path, count in counts.items() if path not in found}
    return Share(len(counts), sum(counts.values()), missing)


def add_documented_names(record: Mapping[str, Any], uses: Uses) -> dict[str, Any]:
    """The record of public names with those besides that the documentation imports."""
    modules: dict[str, dict[str, Any]] = {}
    for module in sorted({*record["modules"], *uses}):
        known = record["modules"].get(module, {})
        modules[module] = {name: known.get(name) for name in sorted({*known, *uses.get(module, {})})}
    return {**record, "modules": modules}
