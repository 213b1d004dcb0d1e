"""How programs end that have used a local server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os, sys, threading, time
from typing import TypedDict
from graphd import START, StateGraph
from graphd.dev import shared_dev_server

class State(TypedDict, total=False):
    n: int

begun, go_on = threading.Event(), threading.Event()

def node(state):
    begun.set()
    go_on.wait(60)
    return {"n": state["n"] + 1}

graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
"""

_KILLED = """
threading.Thread(target=lambda: graph.invoke({"n": 1}), daemon=True).start()
assert begun.wait(60)
server = shared_dev_server().process
server.kill()
server.wait()
time.sleep(1)  # the worker has noticed, and hands the result over by a call
go_on.set()
"""

_FORKED = """
go_on.set()
assert graph.invoke({"n": 1}) == {"n": 2}
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert graph.invoke({"n": 2}) == {"n": 3}
"""


def run_program(text: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _PROGRAM + text], check=True, timeout=120)


def test_a_program_ends_though_its_server_was_killed_under_a_node() -> None:
    run_program(_KILLED)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_ends_and_leaves_the_server_to_its_parent() -> None:
    run_program(_FORKED)
