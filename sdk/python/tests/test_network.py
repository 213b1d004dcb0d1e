"""A worker finds its way back, and says what it can't deliver."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from graphd import START, StateGraph, memo
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.server import server_at, unary
from graphd.dev import DevServer, dev
from tests.relay import Relay
from tests.test_worker import State, wait_until


@pytest.fixture(scope="module")
def quick() -> Iterator[DevServer]:
    """A server that misses a worker soon."""
    with dev(flags=["--worker-beat", "100ms", "--worker-lease", "20s"]) as started:
        yield started


def attached(node: Any, address: str, name: str) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(server=address, name=name)


def start(server: DevServer, graph: str, thread: str) -> gs.WaitRunRequest:
    request = gs.StartRunRequest()
    request.run.graph, request.run.thread_id, request.run.create_thread = graph, thread, True
    request.run.input.json = '{"log":[]}'
    unary(server_at(server.address).stubs.graphs.StartRun, request)
    return gs.WaitRunRequest(thread_id=thread)


def end(server: DevServer, started: gs.WaitRunRequest) -> Any:
    started.wait.seconds = 20
    return unary(server_at(server.address).stubs.graphs.WaitRun, started)


def test_a_connection_that_goes_silent_is_given_up(quick: DevServer) -> None:
    with Relay(quick.port) as relay:
        graph = attached(lambda state: {"log": ["done"]}, relay.address, "silent")
        relay.freeze()
        run = end(quick, start(quick, "silent", "silent-1"))
        assert run.output.json == '{"log":["done"]}'
        graph.detach()


def test_calls_under_way_are_repeated_on_the_new_connection(quick: DevServer) -> None:
    begun, go_on, effects = threading.Event(), threading.Event(), []

    def node(state: State) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(20)
        return {"log": [memo("pay", lambda: effects.append("paid") or "paid")]}

    with Relay(quick.port) as relay:
        graph = attached(node, relay.address, "repeated")
        started = start(quick, "repeated", "repeated-1")
        assert begun.wait(10)
        time.sleep(0.5)  # by now the server has heard that the task has begun
        relay.freeze()
        go_on.set()
        assert end(quick, started).output.json == '{"log":["paid"]}'
        assert effects == ["paid"], "the worker has kept its task"
        graph.detach()


def test_a_worker_leaves_though_its_server_does_not_answer(quick: DevServer) -> None:
    program = """
import sys, threading, time
from graphd import START, StateGraph, memo
go_on = threading.Event()
def node(state):
    print("begun", flush=True)
    go_on.wait()
    return {"log": [memo("key", lambda: "value")]}
graph = StateGraph(dict).add_node("node", node).add_edge(START, "node").compile(server=sys.argv[1], name="stuck")
sys.stdin.readline()
go_on.set()
time.sleep(0.5)
graph.detach()
"""
    with Relay(quick.port) as relay:
        worker = subprocess.Popen(
            [sys.executable, "-c", program, relay.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdin is not None and worker.stdout is not None
        try:
            wait_until(lambda: _registered(quick, "stuck"))
            start(quick, "stuck", "stuck-1")
            assert worker.stdout.readline() == "begun\n"
            quick.process.send_signal(19)  # SIGSTOP
            worker.stdin.write("go on\n")
            worker.stdin.flush()
            assert worker.wait(10) == 0
        finally:
            quick.process.send_signal(18)  # SIGCONT
            worker.kill()


def _registered(server: DevServer, graph: str) -> bool:
    from graphd._gen.v1 import registry_service_pb2 as rs

    listed = unary(server_at(server.address).stubs.registry.ListWorkers, rs.ListWorkersRequest())
    return any(graph in node for w in listed.workers for node in w.nodes)
