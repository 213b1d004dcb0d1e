"""graphd's entrypoints and tasks do what LangGraph's do: the same programs, told by both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer

from .differences import DIFFERENCES
from .kit import PROGRAMS, Kit
from .record import RECORDED, RECORDED_WITH, has_recorded_version, run_on_langgraph

EXPECTED: dict[str, Any] = json.loads(RECORDED.read_text())
NEEDS = {"tokens_of_models_in_tasks": ("langchain_core",)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.compiled.attached_graph.shared_dev_server", lambda: server)
    monkeypatch.setattr("graphd.server_choice.shared_dev_server", lambda: server)
    for needed in NEEDS.get(name, ()):
        pytest.importorskip(needed)
    kit = Kit("graphd", InMemorySaver)
    PROGRAMS[name](kit)
    expected = EXPECTED[name]
    for difference in DIFFERENCES.get(name, ()):
        expected = difference.apply(expected)
    assert kit.report() == expected


@pytest.mark.skipif(not has_recorded_version(), reason=f"the record is of LangGraph {RECORDED_WITH}")
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_recorded_is_what_langgraph_does(name: str) -> None:
    assert run_on_langgraph(name) == EXPECTED[name]


def test_every_program_is_recorded() -> None:
    assert EXPECTED.keys() == PROGRAMS.keys()
    assert DIFFERENCES.keys() <= PROGRAMS.keys()
