"""A program that only serves, told to end while one of its nodes runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.dev import DevServer
from graphd.transport.server import call_unary, server_at

PROGRAM = """
import os, sys, time
from typing import TypedDict
from graphd import START, StateGraph

class State(TypedDict):
    by: int

def slow(state):
    print("begun", flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    return {"by": os.getpid()}

builder = StateGraph(State)
builder.add_node("slow", slow)
builder.add_edge(START, "slow")
graph = builder.compile(server=os.environ["GRAPHD_SERVER"], name="serve")
print("serves", flush=True)
graph.serve()
print("left", flush=True)
"""


def test_a_worker_told_to_end_finishes_what_runs(server: DevServer, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    worker = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(go_on)],
        env=os.environ | {"GRAPHD_SERVER": server.address},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "serves\n"
        graphs = server_at(server.address).stubs.graphs
        request = gs.StartRunRequest()
        request.run.graph, request.run.thread_id, request.run.create_thread = "serve", "serve-1", True
        request.run.input.json = "{}"
        call_unary(graphs.StartRun, request)
        assert worker.stdout.readline() == "begun\n"
        worker.send_signal(signal.SIGTERM)
        ended: list[Any] = []
        waiting = threading.Thread(target=lambda: ended.append(worker.wait()))
        waiting.start()
        waiting.join(0.3)
        assert not ended  # it waits for its node
        go_on.touch()
        run = call_unary(graphs.WaitRun, gs.WaitRunRequest(thread_id="serve-1"))
        assert run.output.json == f'{{"by":{worker.pid}}}'
        waiting.join(60)
        assert ended == [0]
        assert worker.stdout.read() == "left\n"
    finally:
        worker.kill()
        worker.communicate()
