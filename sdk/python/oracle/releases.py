"""What releases of LangGraph do differently, as far as the oracle has to know it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Release:
    """One release, and what distinguishes it until the next one of the table."""

    version: str
    forgets_second_question: bool
    """A state at the second question of a node says that nothing is due."""
    lists_answered: bool
    """The newest state lists what finished tasks had asked."""
    changed: tuple[str, ...] = ()
    """The recorded cases that it does not play as the anchor does."""


RELEASES = (
    Release(
        "1.2.11",
        forgets_second_question=True,
        lists_answered=True,
        changed=(
            *("E02", "E02b", "E04", "E24", "E25", "E26", "G15", "H08", "H09b"),
            *("L01", "L02", "L03", "L06", "L07", "L08", "L09", "L10", "L11", "L13", "L15", "L17", "L18", "L20", "L22"),
            *("O01", "O03", "O06", "O08", "O09"),
        ),
    ),
    Release("1.2.22", forgets_second_question=False, lists_answered=False),
)
"""In ascending order. The last one is the anchor: the recorded cases say what it does."""

ANCHOR = RELEASES[-1]

UNSTEADY = {
    "B06": "LangGraph may write a join of the next superstep into a checkpoint that is still to be stored",
}
"""Recorded cases that LangGraph does not play the same each time, and why."""


def installed_version() -> str:
    """The version of LangGraph in this environment."""
    return metadata.version("langgraph")


def find_release(version: str) -> Release:
    """The newest release of the table that is not newer than the version, or the oldest one."""
    older = [r for r in RELEASES if _numbers(r.version) <= _numbers(version)]
    return older[-1] if older else RELEASES[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
