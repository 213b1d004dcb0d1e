"""Who may import whom. CONTRIBUTING.md and docs/python.md say it in words.

A room is a module or a folder right below ``graphd``. Data flows one way: what
a program declares goes down to the values it is made of, and only
``compiled`` knows both the worker, which runs nodes, and the client, which
starts runs. Imports inside of functions count like all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "graphd"

GROUND = "constants errors names values"
# The rooms, from the inside out. "face" rooms only hand on what others define.
MAY: dict[str, str] = {
    "constants": "",
    "messages": "",
    "managed": "",
    "dev": "",
    "values": "",
    "names": "constants",
    "errors": "values",
    "codec": "messages values",
    "channels": "errors messages",
    "cache": "",
    "transport": "errors",
    "runtime": f"{GROUND} codec messages",
    "declare": f"{GROUND} codec channels managed messages",
    "drawing": "constants names declare",
    "prebuilt": f"{GROUND} codec messages runtime",
    "worker": f"{GROUND} codec messages transport runtime declare",
    "client": f"{GROUND} codec messages transport runtime declare",
    "checkpoint": "names dev transport",
    "compiled": f"{GROUND} dev transport runtime declare drawing worker client",
    "graph": "constants messages runtime values declare compiled",
    "config": "runtime",  # a face
    "types": "runtime values",  # a face
    "": "checkpoint config constants dev graph runtime types",  # a face
}

SPEAKS_GRPC = {"transport", "dev", "worker", "client"}


def modules() -> dict[str, ast.Module]:
    """Every module by its name below graphd, generated code left out."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] != "_gen":
            found[".".join(p for p in parts if p != "__init__")] = ast.parse(path.read_text())
    return found


MODULES = modules()


def room(module: str) -> str:
    return module.partition(".")[0]


def imported(tree: ast.Module) -> Iterator[str]:
    """What a module imports, by full names, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import names what it imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def arrows(trees: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """Which module imports which."""
    found = set()
    for module, tree in trees.items():
        for name in imported(tree):
            if name.split(".")[0] != "graphd":
                continue
            inner = name.partition(".")[2]
            target = inner if inner in trees else inner.rpartition(".")[0]
            if target in trees and target != module:
                found.add((module, target))
    return found


def circles(arrows: Iterable[tuple[str, str]]) -> set[str]:
    """The modules that are in a circle, or on a way from one to another."""
    left = set(arrows)
    while True:
        ends = {a for a, _ in left} & {b for _, b in left}
        kept = {(a, b) for a, b in left if a in ends and b in ends}
        if kept == left:
            return ends
        left = kept


ARROWS = arrows(MODULES)


def test_every_room_has_a_rule() -> None:
    assert {room(m) for m in MODULES} == set(MAY)


@pytest.mark.parametrize("name", MAY)
def test_a_room_imports_only_what_it_may(name: str) -> None:
    allowed = {*MAY[name].split(), name}
    assert [(a, b) for a, b in sorted(ARROWS) if room(a) == name and room(b) not in allowed] == []


@pytest.mark.parametrize("name", MAY)
def test_a_room_needs_what_it_may_import(name: str) -> None:
    used = {room(b) for a, b in ARROWS if room(a) == name}
    assert {*MAY[name].split()} - used - {*GROUND.split()} == set()


def test_no_modules_import_each_other() -> None:
    assert circles(ARROWS) == set()


def test_no_import_is_hidden() -> None:
    """An import inside of a function, or for types alone, is one that would close a circle."""
    assert [name for tree in MODULES.values() for name in _hidden(tree)] == []


def _hidden(tree: ast.Module) -> Iterator[str]:
    """What is imported inside of functions or for types alone."""
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in top:
            yield from (n for n in imported(ast.Module([node], [])) if n.startswith("graphd"))


def test_declaring_and_the_code_of_nodes_know_no_server() -> None:
    speaking = {room(m) for m, tree in MODULES.items() if any(n.split(".")[0] == "grpc" for n in imported(tree))}
    assert speaking == SPEAKS_GRPC
    services = {m for m, tree in MODULES.items() if any("_pb2_grpc" in n for n in imported(tree))}
    assert {room(m) for m in services} <= {"transport", "worker"}


def test_a_circle_is_found() -> None:
    wrong = {
        "a": "from graphd import b",
        "b": "def f():\n    from graphd.c import name",
        "c": "import graphd.a",
        "d": "from graphd import a",
    }
    found = arrows({m: ast.parse(text) for m, text in wrong.items()})
    assert found == {("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")}
    assert circles(found) == {"a", "b", "c"}
    assert circles(found - {("c", "a")}) == set()
