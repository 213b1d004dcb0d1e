"""Programs for LangGraph run on graphd after changing their imports, and tell the same.

Each program of this folder tells what it sees in ``out``. It is run as it is, on
LangGraph, and with ``graphd`` in place of ``langgraph`` in its imports.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphd.dev import dev
from graphd.errors import GraphdError
from graphd.types import Command
from tests.load_program import find_programs, load_program, run_program

FOLDER = Path(__file__).parent
PROGRAMS = [path.stem for path in find_programs(FOLDER)]
# Programs that graphd treats better on purpose, each with a test of its own below.
BETTER = {"cleanup", "side_effects"}


def load(program: str, library: str) -> dict[str, Any]:
    return load_program(FOLDER / f"{program}.py", library)


def run(program: str, library: str) -> list[Any]:
    return run_program(FOLDER / f"{program}.py", library)


@pytest.fixture(params=PROGRAMS)
def told(request: pytest.FixtureRequest) -> tuple[str, list[Any], list[Any]]:
    pytest.importorskip("langgraph")
    return request.param, run(request.param, "langgraph"), run(request.param, "graphd")


def test_it_tells_the_same_on_both(told: tuple[str, list[Any], list[Any]]) -> None:
    program, there, here = told
    assert len(there) > 3
    if program not in BETTER:
        assert here == there


def test_nodes_that_catch_exceptions_ask_all_the_same() -> None:
    """LangGraph swallows the question of a node that catches Exception around it."""
    pytest.importorskip("langgraph")
    there = {told["node"]: told for told in run("side_effects", "langgraph")}
    here = {told["node"]: told for told in run("side_effects", "graphd")}
    swallowed = {"catching": "swallowed", "retrying": "gave up after 3"}
    for node, told in there.items():
        if node not in swallowed:
            assert here[node] == told
            continue
        assert (told["result"], len(told["passes"])) == (swallowed[node], 1)
        assert here[node]["result"] == "approved"
        assert [asked for asked, _ in here[node]["passes"]] == [[f"{node}?"], []]


def test_cleaned_threads_keep_their_state_and_questions() -> None:
    """LangGraph's saver in memory has no prune."""
    pytest.importorskip("langgraph")
    there, here = run("cleanup", "langgraph"), run("cleanup", "graphd")
    assert there.pop(4) == "not pruned"
    assert here[:5] == there[:5], "before, and the thread that is gone"
    for (*state, length), (*pruned, left) in zip(there[5:7], here[5:7], strict=True):
        assert pruned == state
        assert left == 1 < length
    assert here[7][:-1] == there[7][:-1]


def test_one_of_two_answers_to_an_order_wins() -> None:
    names = load("order_handler", "graphd")
    graph, config = names["graph"], {"configurable": {"thread_id": "race"}}
    assert names["handle"]("race", "I want a lamp") == [{"kind": "payment", "product": "lamp", "price": 40}]
    both = threading.Barrier(2, timeout=60)

    def answer(text: str) -> str | GraphdError:
        both.wait()
        try:
            return str(graph.invoke(Command(resume=text), config)["status"])
        except GraphdError as error:
            return error

    with ThreadPoolExecutor() as pool:
        told = list(pool.map(answer, ["I confirm", "no"]))
    won = [one for one in told if isinstance(one, str)]
    assert len(won) == 1, told
    assert graph.get_state(config).values["status"] == won[0]


BEGIN = """
from tests.origin.test_origin import load
names = load("order_handler", "graphd")
names["handle"]("kill", "please send a desk")
os.kill(os.getpid(), signal.SIGKILL)
"""
GO_ON = """
from tests.origin.test_origin import load
names = load("order_handler", "graphd")
snapshot = names["graph"].get_state({"configurable": {"thread_id": "kill"}})
print(json.dumps([list(snapshot.next), [q.value for q in snapshot.interrupts], names["handle"]("kill", "confirm")]))
"""


def test_a_question_outlives_its_server_and_its_worker(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'orders.db'}"

    def run_process(code: str, address: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "import json, os, signal" + code],
            env=os.environ | {"GRAPHD_SERVER": address},
            cwd=FOLDER.parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )

    with dev(store=store) as server:
        assert run_process(BEGIN, server.address).returncode == -signal.SIGKILL
        server.process.kill()
    with dev(store=store) as server:
        ended = run_process(GO_ON, server.address)
    assert ended.returncode == 0, ended.stderr
    waiting, questions, result = json.loads(ended.stdout)
    assert (waiting, questions) == (["pay"], [{"kind": "payment", "product": "desk", "price": 210}])
    assert result["status"] == "paid"


def test_wrapped_tools_do_nothing_before_the_answer() -> None:
    told = run("tool_wrapper", "graphd")
    asked = [line for line in told if line[0] in ("accept", "edit", "response", "ignore")]
    assert [line[0] for line in asked] == ["accept", "edit", "response", "ignore"] * 2
    for _, (question,), messages, booked in asked:
        assert set(question) == {"action_request", "config", "description"}
        assert [kind for kind, *_ in messages] == ["human", "ai"]
        assert booked == []
    ended = [[line[0], line[-1]] for line in told if line[0] in ("ended", "failed")]
    assert ended[:4] == [["ended", ["Grand for 1"]], ["ended", ["Cheap Inn for 2"]], ["ended", []], ["failed", []]]
    assert ended[4:] == [["ended", ["not Grand"]], ["ended", ["not Cheap Inn"]], ["ended", []], ["failed", []]]
