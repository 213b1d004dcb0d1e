"""A worker finds its way back, and says what it can't deliver."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphd import START, StateGraph, get_stream_writer, memo
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import registry_service_pb2 as rs
from graphd.dev import DevServer, dev
from graphd.errors import GraphdError
from graphd.transport.server import call_unary, server_at
from graphd.types import Command
from graphd.worker.session import Session
from tests.relay import Relay
from tests.test_worker import State, wait_until


@pytest.fixture(scope="module")
def quick() -> Iterator[DevServer]:
    """A server that misses a worker soon."""
    with dev(flags=["--worker-beat", "100ms", "--worker-lease", "2m"]) as started:
        yield started


def attached(node: Any, address: str, name: str) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(server=address, name=name)


def start(server: DevServer, graph: str, thread: str) -> gs.WaitRunRequest:
    request = gs.StartRunRequest()
    request.run.graph, request.run.thread_id, request.run.create_thread = graph, thread, True
    request.run.input.json = '{"log":[]}'
    call_unary(server_at(server.address).stubs.graphs.StartRun, request)
    return gs.WaitRunRequest(thread_id=thread)


def end(server: DevServer, started: gs.WaitRunRequest) -> Any:
    started.wait.seconds = 60
    return call_unary(server_at(server.address).stubs.graphs.WaitRun, started)


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
        assert go_on.wait(60)
        return {"log": [memo("pay", lambda: effects.append("paid") or "paid")]}

    with Relay(quick.port) as relay:
        graph = attached(node, relay.address, "repeated")
        started = start(quick, "repeated", "repeated-1")
        assert begun.wait(60)
        relay.freeze()
        go_on.set()
        assert end(quick, started).output.json == '{"log":["paid"]}'
        assert effects == ["paid"], "the worker has kept its task"
        graph.detach()


def test_a_side_effect_that_has_begun_is_not_repeated_when_the_connection_breaks(quick: DevServer) -> None:
    effects: list[str] = []
    with Relay(quick.port) as relay:

        def effect() -> str:
            effects.append("paid")
            relay.freeze()
            return "paid"

        graph = attached(lambda state: {"log": [memo("pay", effect)]}, relay.address, "begun")
        assert end(quick, start(quick, "begun", "begun-1")).output.json == '{"log":["paid"]}'
        assert effects == ["paid"]
        graph.detach()


def test_a_server_knows_that_a_worker_has_left(quick: DevServer) -> None:
    for _ in range(50):
        attached(lambda state: {}, quick.address, "left").detach()
        wait_until(lambda: not _registered(quick, "left"))  # a lease lasts longer than that


def test_a_task_of_a_worker_that_leaves_is_not_held_until_its_lease_ends() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def node(state: State) -> dict[str, Any]:
        begun.set()
        assert go_on.wait(60)
        return {"log": ["first"]}

    with dev(flags=["--worker-beat", "30s", "--worker-lease", "10m"]) as server:
        graph = attached(node, server.address, "left")
        started = start(server, "left", "left-1")
        assert begun.wait(60)
        graph.detach()
        graph = attached(lambda state: {"log": ["second"]}, server.address, "left")
        assert end(server, started).output.json == '{"log":["second"]}'
        go_on.set()
        graph.detach()


def test_a_worker_leaves_though_its_server_does_not_answer(quick: DevServer) -> None:
    program = """
import sys, threading
from graphd import START, StateGraph, memo
go_on, done = threading.Event(), threading.Event()
def effect():
    print("begun", flush=True)
    go_on.wait()
    done.set()
    return "value"
graph = StateGraph(dict).add_node("node", lambda state: {"log": [memo("key", effect)]})
graph = graph.add_edge(START, "node").compile(server=sys.argv[1], name="stuck")
sys.stdin.readline()
go_on.set()
done.wait()
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
            quick.process.send_signal(signal.SIGSTOP)
            worker.stdin.write("go on\n")
            worker.stdin.flush()
            assert worker.wait(60) == 0
        finally:
            quick.process.send_signal(signal.SIGCONT)
            worker.kill()


def failure(node: Any, server: DevServer, name: str) -> Any:
    graph = attached(node, server.address, name)
    run = end(server, start(server, name, f"{name}-1"))
    graph.detach()
    return run.failure


def test_a_worker_ends_whichever_of_its_threads_gets_the_signal(server: DevServer) -> None:
    program = """
import signal, sys, threading, time
from graphd import START, StateGraph
graph = StateGraph(dict).add_node("node", dict).add_edge(START, "node").compile(server=sys.argv[1], name="signal")
def end():
    while signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # until serve listens to it
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=end).start()
graph.serve()
"""
    subprocess.run([sys.executable, "-c", program, server.address], timeout=120, check=True)


def test_a_result_that_is_far_too_large_fails_at_once(server: DevServer) -> None:
    runs: list[int] = []

    def node(state: State) -> dict[str, Any]:
        runs.append(1)
        return {"log": ["x" * (32 << 20)]}

    failed = failure(node, server, "large")
    assert failed.reason == "OUTPUT_TOO_LARGE"
    assert "33554" in failed.message and "4194304" in failed.message
    assert len(runs) == 1


def test_what_the_server_refuses_fails_the_task(quick: DevServer) -> None:
    def node(state: State) -> Any:
        return Command(goto="nowhere")

    failed = failure(node, quick, "goto")
    assert failed.reason == "UNKNOWN_TARGET_NODE" and "nowhere" in failed.message


def test_a_value_without_json_names_itself(quick: DevServer) -> None:
    failed = failure(lambda state: {"log": [float("nan")]}, quick, "nan")
    assert failed.type == "ValueError" and "JSON" in failed.message


def test_a_memo_that_is_too_large_fails_its_node(server: DevServer) -> None:
    failed = failure(lambda state: {"log": [memo("big", lambda: "x" * (32 << 20))]}, server, "big-memo")
    assert failed.type == "GraphdError" and "larger than" in failed.message


def test_of_two_workers_with_one_name_the_older_says_why_it_stops(
    quick: DevServer, caplog: pytest.LogCaptureFixture
) -> None:
    graph = attached(lambda state: {}, quick.address, "twin")
    older = graph.attach().session
    newer = Session(server_at(quick.address), older.manifest, older.programs, older.worker_id)
    with pytest.raises(GraphdError, match="has connected again") as caught:
        older.wait_closed()
    assert caught.value.reason == "WORKER_REPLACED"
    assert "does not take this worker" in caplog.text
    newer.close()
    graph.detach()


def test_a_server_that_speaks_another_protocol_says_so(quick: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphd.worker.handshake.PROTOCOL", 7)
    with pytest.raises(GraphdError, match="speaks versions 7 to 7") as caught:
        attached(lambda state: {}, quick.address, "future")
    assert caught.value.reason == "PROTOCOL_MISMATCH"


def test_a_flood_of_events_delays_no_result(quick: DevServer) -> None:
    def node(state: State) -> dict[str, Any]:
        write = get_stream_writer()
        for n in range(20_000):  # 1,000 may wait
            write(n)
        return {"log": ["done"]}

    graph = attached(node, quick.address, "flood")
    given = {"configurable": {"thread_id": "flood-1"}}
    seen = list(graph.stream({"log": []}, given, stream_mode=["custom", "values"]))
    assert seen[-1] == ("values", {"log": ["done"]})
    shown = [n for mode, n in seen if mode == "custom"]
    assert shown == sorted(set(shown)), "some may be missing, none comes twice or out of order"
    graph.detach()


def test_an_event_that_is_too_large_harms_nobody(server: DevServer) -> None:
    def node(state: State) -> dict[str, Any]:
        for value in ("first", "x" * (30 << 20), "last"):
            get_stream_writer()(value)
        return {"log": ["done"]}

    graph = attached(node, server.address, "large-event")
    given = {"configurable": {"thread_id": "large-event-1"}}
    assert list(graph.stream({"log": []}, given, stream_mode="custom")) == ["first", "last"]
    assert graph.get_state(given).values == {"log": ["done"]}
    graph.detach()


def test_a_worker_that_was_paused_beyond_its_lease_changes_nothing(tmp_path: Path) -> None:
    program = """
import sys, time
from graphd import START, StateGraph, memo
def node(state):
    print("begun", flush=True)
    sys.stdin.readline()
    return {"who": memo("who", effect)}
def effect():
    with open(sys.argv[3], "a") as file:
        file.write(sys.argv[2])
    return sys.argv[2]
StateGraph(dict).add_node("node", node).add_edge(START, "node").compile(server=sys.argv[1], name="paused").serve()
"""
    with dev(flags=["--worker-beat", "100ms", "--worker-lease", "400ms"]) as server:
        command = [sys.executable, "-c", program, server.address]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        effects = tmp_path / "effects"
        first: Any = subprocess.Popen([*command, "first", str(effects)], **pipes)
        second: Any = None
        try:
            wait_until(lambda: _registered(server, "paused"))
            request = gs.StartRunRequest()
            request.run.graph, request.run.thread_id, request.run.create_thread = "paused", "p1", True
            request.run.input.json = "{}"
            call_unary(server_at(server.address).stubs.graphs.StartRun, request)
            assert first.stdout.readline() == "begun\n"
            first.send_signal(signal.SIGSTOP)
            second = subprocess.Popen([*command, "second", str(effects)], **pipes)
            assert second.stdout.readline() == "begun\n"
            first.send_signal(signal.SIGCONT)
            first.stdin.write("go on\n")
            first.stdin.flush()
            wait_until(lambda: len(_workers(server)) == 2)
            second.stdin.write("go on\n")
            second.stdin.flush()
            assert end(server, gs.WaitRunRequest(thread_id="p1")).output.json == '{"who":"second"}'
            assert effects.read_text() == "second", "the side effect has not even begun in the first"
        finally:
            for one in (first, second):
                if one is not None:
                    one.kill()
                    one.communicate()


def _workers(server: DevServer) -> Any:
    return call_unary(server_at(server.address).stubs.registry.ListWorkers, rs.ListWorkersRequest()).workers


def _registered(server: DevServer, graph: str) -> bool:
    return any(graph in node for w in _workers(server) for node in w.nodes)
