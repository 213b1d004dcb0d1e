"""A program for LangGraph runs on graphd after changing its imports and compile().

The very file is also run on LangGraph, and both must tell the same.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphd.dev import DevServer

from .functional.record import RECORDED_WITH, has_recorded_version

PROGRAM = Path(__file__).with_name("port_program.py").read_text()
IMPORT = re.compile(r"^(from|import) langgraph\b", re.MULTILINE)
COMPILE = re.compile(r"compile\(checkpointer=InMemorySaver\(\)\)")


def ported(server: str) -> str:
    """The program for graphd; only these lines are touched."""
    text, imports = IMPORT.subn(r"\1 graphd", PROGRAM)
    text, compiles = COMPILE.subn(f'compile(server="{server}", name="port")', text)
    assert (imports, compiles) == (5, 1)
    return text


def run(program: str, name: str) -> Any:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(program, name, "exec", dont_inherit=True), names)
    return json.loads(json.dumps(names["out"]))


@pytest.fixture(scope="module")
def out(server: DevServer) -> Any:
    return run(ported(server.address), "ported")


def test_it_tells_the_same_as_on_langgraph(out: Any) -> None:
    pytest.importorskip("langgraph")
    assert out == run(PROGRAM, "original")


def test_it_does_what_it_is_for(out: Any) -> None:
    ends = [o["state"] for o in out if isinstance(o, dict) and "state" in o and o["state"].get("verdict")]
    assert [end["verdict"] for end in ends] == ["pay", "refuse"]
    assert ends[0]["notes"] == [
        "ann because it broke",
        "lamp: ok",
        "chair: ok",
        "flaky",
        "credit yes",
        "stock yes",
        "joined",
        "paid",
    ]
    assert (ends[0]["total"], ends[0]["title"], ends[0]["customer"]) == (90, "a longer title than before", "ann")


FUNCTIONAL = Path(__file__).with_name("port_functional_program.py").read_text()


@pytest.fixture
def functional_out(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the program of the functional API tells on graphd; only its imports are changed."""
    monkeypatch.setattr("graphd.compiled.attached_graph.shared_dev_server", lambda: server)
    monkeypatch.setattr("graphd.server_choice.shared_dev_server", lambda: server)
    text, imports = IMPORT.subn(r"\1 graphd", FUNCTIONAL)
    assert imports == 8
    return run(text, "functional_ported")


@pytest.mark.skipif(not has_recorded_version(), reason=f"earlier versions than LangGraph {RECORDED_WITH} ask twice")
def test_the_functional_program_tells_the_same_as_on_langgraph(functional_out: Any) -> None:
    assert functional_out == run(FUNCTIONAL, "functional_original")


def test_the_functional_program_does_what_it_is_for(functional_out: Any) -> None:
    states = [o for o in functional_out if isinstance(o, dict) and "asked" in o]
    assert [s["asked"] for s in states] == [["only 2 of 3: which?"], [{"lend": "Rivers"}], []]
    assert states[-1]["values"] == ["Rivers is reserved", "Lakes is reserved"]
    assert functional_out[-1] == "refused"
