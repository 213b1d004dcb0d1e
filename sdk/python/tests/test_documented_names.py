"""Programs after LangGraph's documentation find its names: at least 95 of 100, counted by name and by use."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from graphd.errors import MissingPackageError

HERE = Path(__file__).parent
TOOLS = HERE.parent / "tools"
PAGE = (HERE.parents[2] / "docs" / "python.md").read_text()
USES: dict[str, dict[str, int]] = json.loads((HERE / "langgraph_documented.json").read_text())["uses"]
COUNTS = {(module, name): count for module, names in USES.items() for name, count in names.items()}
WANTED = 0.95


def is_there(module: str, name: str) -> bool:
    """The import of the documentation works with graphd in place of langgraph."""
    try:
        return hasattr(importlib.import_module(f"graphd.{module}"), name)
    except MissingPackageError:
        return True
    except ModuleNotFoundError:
        return False


MISSING = {key: count for key, count in COUNTS.items() if not is_there(*key)}


def test_nearly_all_documented_names_are_there() -> None:
    assert 1 - len(MISSING) / len(COUNTS) >= WANTED, MISSING
    assert 1 - sum(MISSING.values()) / sum(COUNTS.values()) >= WANTED, MISSING


def test_the_page_has_the_figures_and_what_is_missing() -> None:
    told = PAGE.partition("<!-- table: langgraph-documented -->\n")[2].partition("\n<!-- end -->")[0]
    figures = re.findall(r"\d+(?:\.\d+)?", told.partition(":")[0])
    by_name = 100 - 100 * len(MISSING) / len(COUNTS)
    by_use = 100 - 100 * sum(MISSING.values()) / sum(COUNTS.values())
    assert figures == [str(len(COUNTS)), str(sum(COUNTS.values())), f"{by_name:.1f}", f"{by_use:.1f}"]
    listed = re.findall(r"`([\w.]+)`\s\((\d+)\)", told)
    assert dict(listed) == {f"{module}.{name}": str(count) for (module, name), count in MISSING.items()}


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports one of the tools."""
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module


def test_what_is_elsewhere_or_nowhere_is_missing(tools: Any) -> None:
    uses = {"graph": {"StateGraph": 7}, "channels.topic": {"Topic": 2}, "types": {"Brandnew": 1}, "unknown": {"X": 3}}
    record = tools("documented_share").add_documented_names({"modules": {"graph": {"END": None}}, "classes": {}}, uses)
    assert list(record["modules"]["graph"]) == ["END", "StateGraph"]
    statuses = tools("name_status").read_status(record, lambda value: None)
    share = tools("documented_share").measure_share(uses, statuses)
    assert share.missing == {"channels.topic.Topic": 2, "types.Brandnew": 1, "unknown.X": 3}
    assert (share.of_names, round(share.of_uses, 3)) == (0.25, 0.538)
    assert share.render().replace("\n", " ") == (
        "The documentation of LangGraph imports 4 of these names, 13 times in all, and graphd has 25.0 % of the names, "
        "for 53.8 % of the uses: all but `channels.topic.Topic` (2), `types.Brandnew` (1), `unknown.X` (3)."
    )


CODE = """
%pip install langgraph
from langgraph.graph import START, StateGraph as Graph  # the import of a graph, not of END
from langgraph.types import (
    Command,  # [!code highlight]
    Send,
)
from langgraph.config import get_store, \\
    get_config
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph_sdk import get_client
# from langgraph.func import task
def node(): ...
    from langgraph.func import entrypoint
"""


def test_imports_are_found_in_code_with_gaps(tools: Any) -> None:
    found = list(tools("documented_names").find_imports(CODE))
    assert [f"{module}.{name}" for module, name in found] == [
        "graph.START",
        "graph.StateGraph",
        "types.Command",
        "types.Send",
        "config.get_store",
        "config.get_config",
        "func.entrypoint",
    ]


def commit_files(folder: Path, files: dict[str, str]) -> str:
    """Makes a repository with one commit, and returns the commit."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "pages"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_pages_of_two_repositories_are_counted(tools: Any, tmp_path: Path) -> None:
    line = "from langgraph.graph import END\n"
    cells = [{"cell_type": "code", "source": [line, "END"]}, {"cell_type": "markdown", "source": [line]}]
    commits = {
        "langchain-ai/docs": commit_files(
            tmp_path / "docs",
            {
                "src/oss/a.mdx": f"{line}\n```python A title\n{line}```\n- item\n  ```py\n  {line}  ```\n```ts\n{line}```\n",
                "src/oss/integrations/b.mdx": f"```python\n{line}```\n",
                "src/langsmith/c.mdx": f"```python\n{line}```\n",
                "src/oss/d.py": line,
            },
        ),
        "langchain-ai/langgraph": commit_files(
            tmp_path / "langgraph", {"examples/ü.ipynb": json.dumps({"cells": cells})}
        ),
    }
    folders = {"langchain-ai/docs": tmp_path / "docs/.git", "langchain-ai/langgraph": tmp_path / "langgraph/.git"}
    assert tools("documented_names").record_uses(folders) == {"commits": commits, "uses": {"graph": {"END": 3}}}
