"""Runs a program for LangGraph, as it is or on graphd with ``graphd`` in place of ``langgraph`` in its imports.

A program tells what it sees in ``out``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def find_programs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.stem.startswith(("test_", "__")))


def load_program(path: Path, library: str) -> dict[str, Any]:
    """Runs a program, and returns its names."""
    text = re.sub(r"^(from|import) langgraph\b", rf"\1 {library}", path.read_text(), flags=re.MULTILINE)
    module = ModuleType(f"{path.stem}_on_{library}")
    sys.modules[module.__name__] = module  # a saver finds the classes of the program by their names
    exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
    return vars(module)


def run_program(path: Path, library: str) -> list[Any]:
    """Runs a program, and returns what it has told."""
    told: list[Any] = json.loads(json.dumps(load_program(path, library)["out"]))
    return told
