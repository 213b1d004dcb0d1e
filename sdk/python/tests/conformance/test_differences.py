"""The decisions of differences.py, the tables of the documents and the cases say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from .differences import DIFFERENCES
from .test_conformance import CASES

DOCS = Path(__file__).parents[4] / "docs"


def read_rows(page: str, heading: str) -> list[str]:
    """The first cells of the table under a heading."""
    section = (DOCS / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return [line[2:].partition(" | ")[0] for line in table[1:]]


@pytest.mark.parametrize(
    ("page", "heading", "field"),
    [
        ("concepts.md", "Where graphd differs from LangGraph", "concepts"),
        ("python.md", "What differs on purpose", "python"),
    ],
)
def test_every_row_is_a_decision_and_every_decision_a_row(page: str, heading: str, field: str) -> None:
    rows = read_rows(page, heading)
    begins = [begin for difference in DIFFERENCES.values() if (begin := getattr(difference, field))]
    assert rows
    assert [row for row in rows if sum(row.startswith(begin) for begin in begins) != 1] == []
    assert [begin for begin in begins if sum(row.startswith(begin) for row in rows) != 1] == []


def test_every_decision_is_in_a_table() -> None:
    assert [name for name, one in DIFFERENCES.items() if not one.concepts and not one.python] == []


def test_every_case_that_differs_shows_a_decision() -> None:
    named = {case for difference in DIFFERENCES.values() for case in difference.cases.split()}
    assert named == {case["id"] for case in CASES if case.get("differs")}
