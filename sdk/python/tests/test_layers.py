"""The layers of the SDK, and which of them each may import. sdk/python/README.md describes them.

A layer is a module or a folder right below ``graphd``. Data flows one way: what
a program declares goes down to the values it is made of, and only
``compiled`` knows both the worker, which runs nodes, and the client, which
starts runs. Imports inside of functions count like all others.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "graphd"

GROUND = "constants errors names threads values"
# The layers, from the inside out. A facade only exports what others define.
ALLOWED: dict[str, str] = {
    "compatibility": "",
    "constants": "compatibility",
    "messages": "",
    "managed": "",
    "threads": "",
    "warnings": "",
    "values": "",
    "names": "constants",
    "errors": "values compatibility",
    "security": "errors",
    "codec": "messages values",
    "channels": "compatibility errors messages",
    "cache": "",
    "store": "codec compatibility errors security server_choice threads transport",
    "spans": "packages",
    "transport": "errors security spans threads",
    "packages": "errors",
    "server_choice": "dev security transport",
    "dev": "security transport",
    "runtime": f"{GROUND} compatibility codec messages packages security",
    "declare": f"{GROUND} codec channels managed messages security",
    "drawing": "constants names declare packages",
    "prebuilt": f"{GROUND} compatibility messages packages runtime security managed declare graph warnings",
    "worker": f"{GROUND} codec messages security spans transport runtime declare",
    "client": f"{GROUND} codec messages security transport runtime declare",
    "checkpoint": "compatibility constants errors names packages security server_choice threads transport",
    "compiled": f"{GROUND} channels packages dev security transport runtime declare drawing worker client warnings",
    "remote": f"{GROUND} codec security transport runtime declare client",
    "testing": f"{GROUND} codec dev security remote compiled",
    "graph": "constants messages runtime security values declare compiled",
    "pregel": "compatibility compiled",
    "func": "constants codec declare errors runtime security values compiled",
    "config": "runtime",  # a facade
    "types": "compatibility runtime values",  # a facade
    "__main__": "",  # the command
    "": "checkpoint compatibility config constants dev graph remote runtime security types values",  # a facade
}

# graphd_bin stands beside graphd, so that the command starts without gRPC.
USES_PROGRAM = {"__main__", "dev"}
USES_GRPC = {"transport", "dev", "worker", "client", "remote"}


def read_modules() -> dict[str, ast.Module]:
    """Every module by its name below graphd, generated code left out."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] != "_gen":
            found[".".join(p for p in parts if p != "__init__")] = ast.parse(path.read_text())
    return found


MODULES = read_modules()


def layer_of(module: str) -> str:
    return module.partition(".")[0]


def imported_names(tree: ast.Module) -> Iterator[str]:
    """What a module imports, by full names, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import names what it imports in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def find_imports(trees: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """Which module imports which."""
    found = set()
    for module, tree in trees.items():
        for name in imported_names(tree):
            if name.split(".")[0] != "graphd":
                continue
            inner = name.partition(".")[2]
            target = inner if inner in trees else inner.rpartition(".")[0]
            if target in trees and target != module:
                found.add((module, target))
    return found


def find_circles(imports: Iterable[tuple[str, str]]) -> set[str]:
    """The modules that are in a circle, or on a way from one to another."""
    left = set(imports)
    while True:
        ends = {a for a, _ in left} & {b for _, b in left}
        kept = {(a, b) for a, b in left if a in ends and b in ends}
        if kept == left:
            return ends
        left = kept


IMPORTS = find_imports(MODULES)


def test_every_layer_has_a_rule() -> None:
    assert {layer_of(m) for m in MODULES} == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_layer_imports_only_what_it_may(name: str) -> None:
    allowed = {*ALLOWED[name].split(), name}
    assert [(a, b) for a, b in sorted(IMPORTS) if layer_of(a) == name and layer_of(b) not in allowed] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_a_layer_needs_what_it_may_import(name: str) -> None:
    used = {layer_of(b) for a, b in IMPORTS if layer_of(a) == name}
    assert {*ALLOWED[name].split()} - used - {*GROUND.split()} == set()


def test_no_modules_import_each_other() -> None:
    assert find_circles(IMPORTS) == set()


def test_no_import_is_hidden() -> None:
    """An import inside of a function, or for types alone, is one that would close a circle."""
    assert [name for tree in MODULES.values() for name in _hidden(tree)] == []


def _hidden(tree: ast.Module) -> Iterator[str]:
    """What is imported inside of functions or for types alone."""
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in top:
            yield from (n for n in imported_names(ast.Module([node], [])) if n.startswith("graphd"))


def test_declarations_and_code_of_nodes_know_no_server() -> None:
    using_grpc = {
        layer_of(m) for m, tree in MODULES.items() if any(n.split(".")[0] == "grpc" for n in imported_names(tree))
    }
    assert using_grpc == USES_GRPC
    services = {m for m, tree in MODULES.items() if any("_pb2_grpc" in n for n in imported_names(tree))}
    assert {layer_of(m) for m in services} <= {"transport", "worker"}


def test_the_program_is_found_without_the_sdk() -> None:
    assert {layer_of(m) for m, tree in MODULES.items() if _roots(tree) & {"graphd_bin"}} == USES_PROGRAM
    program = [ast.parse(path.read_text()) for path in SOURCE.with_name("graphd_bin").glob("*.py")]
    assert set().union(*map(_roots, program)) <= {*sys.stdlib_module_names, "graphd_bin"}


def _roots(tree: ast.Module) -> set[str]:
    """The packages that a module imports from."""
    return {name.split(".")[0] for name in imported_names(tree)}


def test_a_circle_is_found() -> None:
    wrong = {
        "a": "from graphd import b",
        "b": "def f():\n    from graphd.c import name",
        "c": "import graphd.a",
        "d": "from graphd import a",
    }
    found = find_imports({m: ast.parse(text) for m, text in wrong.items()})
    assert found == {("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")}
    assert find_circles(found) == {"a", "b", "c"}
    assert find_circles(found - {("c", "a")}) == set()
