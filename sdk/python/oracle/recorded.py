"""Plays the recorded cases on LangGraph: each must differ from it where it says so, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oracle.releases import UNSTEADY, Release
from tests.conformance.library import Library
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Mismatch, Player

CASES = Path(__file__).parents[1] / "tests" / "conformance" / "cases"

Case = dict[str, Any]


def read_cases() -> Iterator[Case]:
    """All recorded cases."""
    for file in sorted(CASES.glob("*.json")):
        yield from json.loads(file.read_text())


def play_case(case: Case) -> str:
    """How LangGraph differs from a case; "" if it does not."""
    library = Library("langgraph")
    world, saver = World(library), library.InMemorySaver()
    try:
        compile_all(world, case, saver)
        Player(case, world, saver).play()
    except Mismatch as different:
        return str(different)
    except Exception as error:  # what graphd accepts or catches
        return f"{type(error).__name__}: {error}"
    return ""


def check_case(case: Case, release: Release) -> str:
    """What is wrong with a case or with the table; "" if nothing is."""
    if case["id"] in UNSTEADY:
        return ""
    difference, marked = play_case(case), bool(case.get("differs"))
    if case["id"] in release.changed:
        return (
            "" if bool(difference) != marked else "plays as on the anchor, though the table of releases says otherwise"
        )
    if difference and not marked:
        return difference
    if marked and not difference:
        return f"does not differ any more: {case['differs']}"
    return ""
