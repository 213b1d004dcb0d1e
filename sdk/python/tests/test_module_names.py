"""Graphs without a name have the same one however their program was started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from typing_extensions import TypedDict
from graphd.graph import StateGraph

class State(TypedDict):
    n: int

def step(state: State) -> State:
    return {"n": state["n"] + 1}

def build():
    builder = StateGraph(State)
    builder.add_node("step", step)
    builder.add_edge("__start__", "step")
    return builder.compile()

graph = build()
if __name__ == "__main__":
    print(graph.program.name)
"""

SHOW = "import {module}; print({module}.graph.program.name)"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "shop" / "flows"
    folder.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "order.py").write_text(PROGRAM)
    (tmp_path / "order.py").write_text(PROGRAM)
    return tmp_path


def run_python(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_module_has_one_name(package: Path) -> None:
    started = {
        run_python(package, "shop/flows/order.py"),
        run_python(package, "-m", "shop.flows.order"),
        run_python(package, "-c", SHOW.format(module="shop.flows.order")),
    }
    assert len(started) == 1


def test_a_script_has_the_name_of_its_module(package: Path) -> None:
    started = {run_python(package, "order.py"), run_python(package, "-c", SHOW.format(module="order"))}
    assert len(started) == 1
    assert started != {run_python(package, "shop/flows/order.py")}, "another module"


def test_a_console_has_no_module(package: Path) -> None:
    assert run_python(package, "-c", PROGRAM).startswith("LangGraph-")
