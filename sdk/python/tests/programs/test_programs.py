"""Programs about the topics of LangGraph's documentation run on graphd after changing their imports, and tell the same.

Each program of this folder tells what it sees in ``out``. It is run as it is, on
LangGraph, and with ``graphd`` in place of ``langgraph`` in its imports.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load_program import find_programs, run_program

PROGRAMS = find_programs(Path(__file__).parent)


@pytest.mark.parametrize("program", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_it_tells_the_same_on_both(program: Path) -> None:
    pytest.importorskip("langgraph")
    there = run_program(program, "langgraph")
    assert len(there) > 3
    assert run_program(program, "graphd") == there
