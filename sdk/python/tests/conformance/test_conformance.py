"""Plays every case against a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer

from .program import World, compile_all
from .steps import Player

CASES = [
    case for file in sorted((Path(__file__).parent / "cases").glob("*.json")) for case in json.loads(file.read_text())
]


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_case(case: dict[str, Any], server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the case says is what happens."""
    monkeypatch.setattr("graphd.compiled.attached_graph.shared_dev_server", lambda: server)
    monkeypatch.setattr("graphd.server_choice.shared_dev_server", lambda: server)
    world, saver = World(), InMemorySaver()
    compile_all(world, case, saver)
    try:
        Player(case, world, saver).play()
    finally:
        for graph in world.graphs.values():
            graph.detach()


def test_whatever_differs_from_langgraph_has_a_reason() -> None:
    """A case that says what differs also says why, and no other does."""
    assert len(CASES) == len({case["id"] for case in CASES})
    for case in CASES:
        assert bool(case.get("differs")) == bool(case.get("because")), case["id"]
