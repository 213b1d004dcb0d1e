"""Each name of LangGraph, public or in its documentation, is accounted for, on the page and by the imports."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd.compatibility.imports import find_absence
from graphd.compatibility.reasons import ABSENT, MOVED

SDK = Path(__file__).parents[1]
TOOL = SDK / "tools" / "langgraph_names.py"
PAGE = (SDK.parents[1] / "docs" / "python.md").read_text()
RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("langgraph_names.json").read_text())
USES: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("langgraph_documented.json").read_text())["uses"]
NAMES = {m: {*RECORD["modules"].get(m, ()), *USES.get(m, ())} for m in (*RECORD["modules"], *USES)}


def run_tool(command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(SDK / "src")}
    return subprocess.run([sys.executable, str(TOOL), command], capture_output=True, text=True, env=environment)


def test_the_page_is_that_of_the_code() -> None:
    done = run_tool("check")
    assert (done.returncode, done.stderr.strip()) == (0, "")


def read_table(name: str) -> dict[str, list[list[str]]]:
    """The names of each row of a table on the page, by column."""
    table = PAGE.partition(f"<!-- table: {name} -->\n")[2].partition("\n<!-- end -->")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    return {re.findall(r"`([^`]+)`", row[0])[0]: [re.findall(r"`(\w+)`", cell) for cell in row[1:]] for row in rows}


def test_every_name_is_on_the_page_once() -> None:
    shown = read_table("langgraph-names")
    assert {owner: sorted(itertools.chain(*cells)) for owner, cells in shown.items()} == {
        owner: sorted(names) for owner, names in NAMES.items()
    }
    for path, cells in read_table("langgraph-members").items():
        assert sorted(itertools.chain(*cells)) == sorted(RECORD["classes"][path])


def test_names_that_are_there_are_there() -> None:
    for module, (there, differs, absent) in read_table("langgraph-names").items():
        place = module if module in importable() else MOVED.get(module, module)
        for name in [*there, *differs]:
            assert hasattr(importlib.import_module(f"graphd.{place}"), name), f"{place}.{name}"
        if module in importable():
            assert not [name for name in absent if hasattr(importlib.import_module(f"graphd.{module}"), name)]


def importable() -> set[str]:
    """The modules of LangGraph that graphd has under the same name."""
    found = set()
    for module in RECORD["modules"]:
        try:
            importlib.import_module(f"graphd.{module}")
        except ModuleNotFoundError:
            continue
        found.add(module)
    return found


def absent_names() -> list[tuple[str, str]]:
    """Names with a reason of their own, of modules that are there."""
    return [(m, n) for m in sorted(importable()) for names in ABSENT.get(m, {}) for n in names.split() if n != "*"]


@pytest.mark.parametrize(("module", "name"), absent_names())
def test_the_import_of_an_absent_name_says_why(module: str, name: str) -> None:
    absence = find_absence(module, name)
    assert absence is not None
    with pytest.raises(ImportError) as refused:
        exec(f"from graphd.{module} import {name}")
    assert str(refused.value) == f"graphd has no {module}.{name}: {absence}"
    with pytest.raises(AttributeError, match=re.escape(str(absence))):
        getattr(importlib.import_module(f"graphd.{module}"), name)
    assert not hasattr(importlib.import_module(f"graphd.{module}"), name)


def test_the_import_of_an_absent_module_says_why() -> None:
    absent = [m for m in [*ABSENT, *MOVED] if m not in importable()]
    assert "pregel.remote" in absent
    for module in absent:
        with pytest.raises(ModuleNotFoundError) as refused:
            exec(f"import graphd.{module}")
        text = str(refused.value)
        assert text.startswith("graphd has no module graphd.")
        for names, reason in ABSENT.get(module, {}).items():
            assert str(reason) in text
            assert module in text and (names == "*" or names.split()[0] in text)
        assert module not in MOVED or f"from graphd.{MOVED[module]}" in text


def test_remote_graph_is_replaced_by_the_client() -> None:
    with pytest.raises(ImportError, match=r"pregel\.remote\.RemoteGraph: .* Instead: graphd\.Client"):
        exec("from graphd.pregel.remote import RemoteGraph")


def test_other_names_are_unknown_as_ever() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Nonsense' from 'graphd\.types'"):
        exec("from graphd.types import Nonsense")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'graphd\.nonsense'"):
        exec("import graphd.nonsense")
    with pytest.raises(AttributeError, match=r"module 'graphd\.types' has no attribute 'Nonsense'"):
        importlib.import_module("graphd.types").Nonsense  # noqa: B018


def test_a_name_without_a_reason_is_found() -> None:
    """The check can fail: a name of LangGraph that nobody has thought of, and reasons that are not needed."""
    sys.path.insert(0, str(TOOL.parent))
    try:
        name_status = importlib.import_module("name_status")
    finally:
        sys.path.remove(str(TOOL.parent))
    record = {"modules": {"types": {"Brandnew": ["a"], "Send": ["node", "other keyword_only"]}}, "classes": {}}
    statuses = name_status.read_status(record, lambda value: ["node"])
    problems = [problem for status in statuses for problem in status.problems()]
    assert problems == [
        "types.Brandnew is not there: say why in ABSENT or ABSENT_MEMBERS, or add it",
        "types.Send does not take other as LangGraph does: say so in DIFFERS, or add it",
    ]
    unused = list(name_status.find_unused_reasons(statuses, record))
    assert "ABSENT: LangGraph has no types.omit_payload" in unused
    assert "DIFFERS: types.interrupt is not there, or not in LangGraph" in unused
