"""Several messages in one on the stream of a session, where both sides know that."""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest
from typing_extensions import TypedDict

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd._gen.v1.worker_service_pb2_grpc import WorkerServiceServicer, add_WorkerServiceServicer_to_server
from graphd.declare.manifest import Manifest
from graphd.graph import START, StateGraph
from graphd.transport.server import server_at
from graphd.worker.session import Session


class State(TypedDict):
    n: int


class ScriptedServer(WorkerServiceServicer):
    """A server with some features that says what a test wants, and keeps what the worker says."""

    def __init__(self, features: Sequence[str]) -> None:
        self.heard: queue.SimpleQueue[ws.ConnectRequest] = queue.SimpleQueue()
        self.says: queue.SimpleQueue[ws.ConnectResponse] = queue.SimpleQueue()
        self._welcome = ws.Welcome(session_id="s", features=features, max_message_bytes=8 << 20)
        self._welcome.beat_interval.FromSeconds(60)  # a worker takes a server for dead that is silent for three beats
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        add_WorkerServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Connect(self, requests: Iterator[ws.ConnectRequest], context: Any) -> Iterator[ws.ConnectResponse]:
        self.heard.put(next(requests))
        concurrent.futures.ThreadPoolExecutor(1).submit(lambda: [self.heard.put(request) for request in requests])
        yield ws.ConnectResponse(welcome=self._welcome)
        while context.is_active():
            with contextlib.suppress(queue.Empty):
                yield self.says.get(timeout=0.1)

    def close(self) -> None:
        self._server.stop(0)


def serve(server: ScriptedServer) -> Session:
    async def node(state: State) -> State:
        return {"n": state["n"] + 1}

    program = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(worker=False, name="g").program
    session = Session(server_at(server.address), Manifest([], []), {"g": program})
    session.wait_ready(60)
    return session


def task(number: int) -> ws.ConnectResponse:
    assignment = pb.TaskAssignment(
        graph="g", node="node", kind=pb.TASK_KIND_NODE, task_id=str(number), thread_id=str(number)
    )
    assignment.lease.token = str(number).encode()
    assignment.channels["n"].json = str(number)
    return ws.ConnectResponse(task=assignment)


def parts_of(message: ws.ConnectRequest) -> Sequence[ws.ConnectRequest]:
    return message.batch.requests if message.HasField("batch") else [message]


def nacks(first: int, number: int) -> list[ws.ConnectRequest]:
    return [ws.ConnectRequest(nack=ws.Nack(reason=str(n))) for n in range(first, first + number)]


@pytest.mark.parametrize("features", [["complete"], ["complete", "batch"]])
def test_a_worker_runs_all_tasks_of_a_message_and_answers_in_the_way_of_its_server(features: list[str]) -> None:
    server = ScriptedServer(features)
    session = serve(server)
    try:
        hello = server.heard.get(timeout=60)
        assert "batch" in hello.hello.manifest.features
        batch = ws.ConnectResponseBatch(responses=[task(n) for n in range(20)])
        server.says.put(ws.ConnectResponse(batch=batch))
        results: dict[bytes, str] = {}
        while len(results) < 20:
            message = server.heard.get(timeout=60)
            assert "batch" in features or not message.HasField("batch")
            for part in parts_of(message):
                if part.HasField("complete"):
                    results[part.complete.lease_token] = part.complete.result.completed.update.json
        assert results == {str(n).encode(): f'{{"n":{n + 1}}}' for n in range(20)}
    finally:
        session.close()
        server.close()


@pytest.mark.parametrize("features", [[], ["batch"]])
def test_a_worker_sends_what_waits_in_one_message_only_if_the_server_knows_that(features: list[str]) -> None:
    server = ScriptedServer(features)
    session = serve(server)
    try:
        heard: list[str] = []
        batches, sent, deadline = 0, 0, time.monotonic() + 60
        while (batches == 0 if features else sent == 0) or len(heard) < sent:
            assert time.monotonic() < deadline
            if len(heard) == sent:
                for request in nacks(sent, 50):
                    session.send_request(request)
                sent += 50
            message = server.heard.get(timeout=60)
            batches += message.HasField("batch")
            heard += [part.nack.reason for part in parts_of(message) if part.HasField("nack")]
        assert heard == [str(n) for n in range(sent)], "in order"
        assert bool(batches) == bool(features)
    finally:
        session.close()
        server.close()
