"""Examples of docs/python.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graphd.remote import Client
from graphd.testing import AnswerPolicy, IsolatedServer
from tests.test_testing import builder_of_program

pytest_plugins = ["graphd.testing.plugin"]

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()
GRAPH = (ROOT / "examples" / "refund-review" / "graph.yaml").read_text()


def read_example(section: str) -> str:
    """The first Python code of a section."""
    text = PAGE.partition(f"# {section}\n")[2]
    (code, *_) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return str(code)


def test_the_example_of_a_client(graphd_client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    graphd_client.graphs.put(GRAPH)
    exec(read_example("Clients without a graph"), {})
    shown = capsys.readouterr().out.splitlines()
    assert "Your refund has been approved. The money is on its way." in shown
    assert shown[-1] == "interrupted"
    assert graphd_client.runs.wait("ticket-1").metadata == {"team": "eu"}


def test_the_example_of_a_test(graphd_server: IsolatedServer, graphd_answers: AnswerPolicy) -> None:
    names: dict[str, Any] = {"builder": builder_of_program("review", "amount")}
    exec(read_example("Test a program"), names)
    names["test_refund"](graphd_server, graphd_answers)
