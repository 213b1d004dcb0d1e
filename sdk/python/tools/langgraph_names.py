"""The names of LangGraph, and the tables of docs/python.md that say which of them graphd has.

    python tools/langgraph_names.py record   # reads the installed langgraph into tests/langgraph_names.json
    python tools/langgraph_names.py write    # writes the tables, from that file and from graphd as it is
    python tools/langgraph_names.py check    # says what is not accounted for, and whether the tables are up to date

The tables have the public names, and those that LangGraph's documentation imports (documented_names.py). A name of a
module is public when the module lists it in ``__all__``, or defines it and has no ``__all__``. A member of a class is
public when it begins with no underscore and its class, or one it is derived from, is not of the standard library or
pydantic.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import documented_names
from documented_share import Uses, add_documented_names, measure_share
from name_status import NameStatus, find_unused_reasons, read_status

HERE = Path(__file__).resolve().parent.parent
RECORD = HERE / "tests" / "langgraph_names.json"
PAGE = HERE.parent.parent / "docs" / "python.md"
LEFT_OUT = "checkpoint.conformance"
"""A package of tests for savers, which programs don't use."""
_FOREIGN = {"builtins", "typing", "typing_extensions", "abc", "enum", "pydantic", "collections", "uuid"}


def record_names() -> dict[str, Any]:
    """The public names of the installed langgraph: of modules, with the parameters of functions, and of classes."""
    modules: dict[str, dict[str, Any]] = {}
    classes: dict[str, dict[str, Any]] = {}
    known: dict[Any, str] = {}
    for name, path in sorted(_find_modules()):
        module = importlib.import_module(f"langgraph.{name}")
        names = _public_names(module, path)
        if names:
            modules[name] = {one: _parameters(getattr(module, one)) for one in names}
        for one in names:
            found = getattr(module, one)
            if inspect.isclass(found) and found.__module__.startswith("langgraph") and found not in known:
                known[found] = f"{name}.{one}"
                classes[f"{name}.{one}"] = {k: _parameters(v) for k, v in sorted(_public_members(found).items())}
    version = importlib.metadata.version("langgraph")
    return {"langgraph": version, "modules": modules, "classes": {k: v for k, v in classes.items() if v}}


def _find_modules() -> Iterator[tuple[str, Path]]:
    langgraph = importlib.import_module("langgraph")
    for root in map(Path, langgraph.__path__):
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            name = ".".join(parts)
            if parts and not any(part.startswith("_") for part in parts) and not name.startswith(LEFT_OUT):
                yield name, path


def _public_names(module: Any, path: Path) -> list[str]:
    if (listed := getattr(module, "__all__", None)) is not None:
        return sorted(set(listed))
    found: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [target.id for target in targets if isinstance(target, ast.Name)]
    return sorted({name for name in found if not name.startswith("_") and hasattr(module, name)})


def _public_members(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] not in _FOREIGN:
            found |= {k: v for k, v in vars(base).items() if not k.startswith("_") and _is_member(v)}
    return {name: getattr(kind, name) if not isinstance(v, property) else v for name, v in found.items()}


def _is_member(value: Any) -> bool:
    return callable(value) or isinstance(value, (property, staticmethod, classmethod))


def _parameters(value: Any) -> list[str] | None:
    """The parameters of a function or a class, None of what is none or says none."""
    if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
        return None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    skipped = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [f"{p.name} {p.kind.name.lower()}" for p in parameters if p.name != "self" and p.kind not in skipped]


def render_tables(statuses: list[NameStatus], uses: Uses) -> dict[str, str]:
    """The tables of the page, by their names."""
    return {
        "langgraph-documented": measure_share(uses, statuses).render(),
        "langgraph-names": _render_names([s for s in statuses if not s.is_member]),
        "langgraph-members": _render_names([s for s in statuses if s.is_member]),
        "langgraph-differs": _render_differences(statuses),
        "langgraph-absent": _render_absences(statuses),
    }


def _render_names(statuses: list[NameStatus]) -> str:
    rows = ["| | there | differs | not |", "|---|---|---|---|"]
    for owner in dict.fromkeys(s.owner for s in statuses):
        own = [s for s in statuses if s.owner == owner]
        cells = [", ".join(f"`{s.name}`" for s in own if s.state == state) for state in ("there", "differs", "not")]
        places = {s.place for s in own if s.place != owner and s.state != "not"}
        if cells[0] and places:
            cells[0] += f" (in {', '.join(f'`graphd.{place}`' for place in sorted(places))})"
        rows.append(f"| `{owner}` | {' | '.join(cells)} |")
    return "\n".join(rows)


def _render_differences(statuses: list[NameStatus]) -> str:
    rows = ["| name | in graphd |", "|---|---|"]
    rows += [f"| `{s.path}` | {s.difference} |" for s in statuses if s.state == "differs"]
    return "\n".join(rows)


def _render_absences(statuses: list[NameStatus]) -> str:
    rows = ["| not there | because | instead |", "|---|---|---|"]
    absent = [s for s in statuses if s.state == "not"]
    for absence in dict.fromkeys(s.absence for s in absent):
        assert absence is not None, "check_names comes first"
        own = [s for s in absent if s.absence == absence]
        places = (_describe_absent(o, own, absent) for o in dict.fromkeys(s.owner for s in own))
        rows.append(f"| {'; '.join(places)} | {absence.why} | {absence.instead or 'nothing'} |")
    return "\n".join(rows)


def _describe_absent(owner: str, named: list[NameStatus], absent: list[NameStatus]) -> str:
    """The names of a module or class; without them where all that are absent there are meant."""
    names = [s.name for s in named if s.owner == owner]
    is_all = len(names) == sum(s.owner == owner for s in absent)
    return f"`{owner}`" if is_all else f"`{owner}`: {', '.join(names)}"


def check_names(statuses: list[NameStatus], record: Mapping[str, Any]) -> list[str]:
    """What is wrong with the table of reasons."""
    return [*(problem for status in statuses for problem in status.problems()), *find_unused_reasons(statuses, record)]


def insert_tables(page: str, tables: dict[str, str]) -> str:
    """The page with these tables between their marks."""
    for name, table in tables.items():
        begin, end = f"<!-- table: {name} -->\n", "\n<!-- end -->"
        before, mark, rest = page.partition(begin)
        _, closing, after = rest.partition(end)
        if not mark or not closing:
            raise ValueError(f"the page has no table {name!r}: want <!-- table: {name} --> and <!-- end -->")
        page = f"{before}{begin}{table}{end}{after}"
    return page


def main(command: str) -> int:
    """Runs a command; returns the code to exit with."""
    if command == "record":
        RECORD.write_text(json.dumps(record_names(), indent=1, sort_keys=True) + "\n")
        return 0
    uses = json.loads(documented_names.RECORD.read_text())["uses"]
    record = add_documented_names(json.loads(RECORD.read_text()), uses)
    statuses = read_status(record, _parameters)
    problems = check_names(statuses, record)
    page = PAGE.read_text()
    written = page if problems else insert_tables(page, render_tables(statuses, uses))
    if command == "write" and not problems:
        PAGE.write_text(written)
    elif written != page:
        problems.append(f"the tables of {PAGE.name} are not those of the code: python tools/langgraph_names.py write")
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("record", "write", "check"):
        raise SystemExit(__doc__)
    raise SystemExit(main(sys.argv[1]))
