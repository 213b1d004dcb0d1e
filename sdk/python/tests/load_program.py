"""Runs a program for LangGraph, as it is or on graphd with ``graphd`` in place of ``langgraph`` in its imports.

A program tells what it sees in ``out``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def find_programs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.stem.startswith(("test_", "__")))


def load_program(path: Path, library: str) -> dict[str, Any]:
    """Runs a program, and returns its names."""
    text = re.sub(r"^(from|import) langgraph\b", rf"\1 {library}", path.read_text(), flags=re.MULTILINE)
    names: dict[str, Any] = {"__name__": f"{path.stem}_on_{library}"}
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    return names


def run_program(path: Path, library: str) -> list[Any]:
    """Runs a program, and returns what it has told."""
    told: list[Any] = json.loads(json.dumps(load_program(path, library)["out"]))
    return told
