"""Runs all programs on LangGraph and writes down what they tell: ``python -m tests.functional.record``."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from . import basic_programs, failing_programs, nested_programs, observing_programs, store_programs
from .kit import PROGRAMS, Kit

RECORDED = Path(__file__).with_name("recorded.json")
MODULES = (basic_programs, failing_programs, nested_programs, observing_programs, store_programs)


def run_on_langgraph(name: str) -> Any:
    """What a program tells on LangGraph."""
    kit = Kit("langgraph", importlib.import_module("langgraph.checkpoint.memory").InMemorySaver)
    PROGRAMS[name](kit)
    return kit.report()


if __name__ == "__main__":
    recorded = {name: run_on_langgraph(name) for name in PROGRAMS}
    RECORDED.write_text(json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
