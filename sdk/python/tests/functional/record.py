"""Runs all programs on LangGraph and writes down what they tell: ``python -m tests.functional.record``."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

from . import basic_programs, failing_programs, nested_programs, observing_programs, store_programs, value_programs
from .kit import PROGRAMS, Kit

RECORDED = Path(__file__).with_name("recorded.json")
MODULES = (basic_programs, failing_programs, nested_programs, observing_programs, store_programs, value_programs)


RECORDED_WITH = "1.2.22"
"""The version of LangGraph that the programs were recorded with. Earlier ones ask twice, or show messages late."""


def has_recorded_version() -> bool:
    """LangGraph is installed, in the version of the record."""
    try:
        return importlib.metadata.version("langgraph") == RECORDED_WITH
    except importlib.metadata.PackageNotFoundError:
        return False


def run_on_langgraph(name: str) -> Any:
    """What a program tells on LangGraph."""
    kit = Kit("langgraph", importlib.import_module("langgraph.checkpoint.memory").InMemorySaver)
    PROGRAMS[name](kit)
    return kit.report()


if __name__ == "__main__":
    if not has_recorded_version():
        raise SystemExit(f"LangGraph {RECORDED_WITH} is needed; for another version change RECORDED_WITH")
    recorded = {name: run_on_langgraph(name) for name in PROGRAMS}
    RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
