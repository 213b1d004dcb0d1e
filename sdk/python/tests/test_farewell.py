"""What a worker says when it leaves arrives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd._gen.v1.worker_service_pb2_grpc import WorkerServiceServicer, add_WorkerServiceServicer_to_server
from graphd.worker.attempt import Attempt
from graphd.worker.session import Session


class Server(WorkerServiceServicer):  # type: ignore[misc]
    """A server that reads what a worker says when it is told to."""

    def __init__(self) -> None:
        self.heard: list[ws.ConnectRequest] = []
        self.read, self.ended = threading.Event(), threading.Event()

    def Connect(self, requests: Iterator[ws.ConnectRequest], context: Any) -> Iterator[ws.ConnectResponse]:
        next(requests)
        welcome = ws.Welcome()
        welcome.beat_interval.FromSeconds(60)
        welcome.lease_ttl.FromSeconds(120)
        yield ws.ConnectResponse(welcome=welcome)
        assert self.read.wait(60)
        for request in requests:
            self.heard.append(request)
            if request.HasField("goodbye"):
                yield ws.ConnectResponse(task=pb.TaskAssignment(graph="g", lease=pb.TaskLease(token=b"late")))
        self.ended.set()


@pytest.fixture
def stub() -> Iterator[tuple[Server, str]]:
    stub, host = Server(), grpc.server(futures.ThreadPoolExecutor(4))
    add_WorkerServiceServicer_to_server(stub, host)  # type: ignore[no-untyped-call]
    port = host.add_insecure_port("127.0.0.1:0")
    host.start()
    yield stub, f"127.0.0.1:{port}"
    stub.read.set()
    host.stop(None)


def session_with(address: str) -> Session:
    session = Session(address, lambda: grpc.insecure_channel(address), [], {})
    session.wait_ready(60)
    return session


def test_all_that_a_worker_has_said_arrives_before_it_leaves(
    stub: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = stub
    session = session_with(address)
    for number in range(1000):
        session.send(ws.ConnectRequest(credit=ws.Credit(total_slots=1, revision=number + 10)))
    monkeypatch.setattr("graphd.worker.session._FAREWELL", 60.0)
    leave = threading.Thread(target=session.close)
    leave.start()
    server.read.set()
    leave.join(90)
    assert not leave.is_alive()
    assert server.ended.is_set(), "the server has read the end of the stream, which was not cut off"
    revisions = [r.credit.revision for r in server.heard if r.HasField("credit")]
    assert revisions[-1000:] == list(range(10, 1010))
    assert server.heard[-1].HasField("goodbye")


def test_a_task_that_comes_after_the_goodbye_is_given_back(stub: tuple[Server, str]) -> None:
    server, address = stub
    session = session_with(address)
    server.read.set()
    running = Attempt(pb.TaskAssignment(graph="g", lease=pb.TaskLease(token=b"running")), session)
    session._tasks._attempts[b"running"] = running
    leave = threading.Thread(target=session.close, args=(60,))
    leave.start()
    try:
        while not any(r.nack.lease_token == b"late" for r in server.heard if r.HasField("nack")):
            assert leave.is_alive()
    finally:
        session._tasks._attempts.clear()
        leave.join(60)
    assert [r.nack.reason for r in server.heard if r.HasField("nack")] == ["the worker leaves"]


def test_a_worker_does_not_wait_long_for_a_server_that_does_not_read(stub: tuple[Server, str]) -> None:
    server, address = stub
    session = session_with(address)
    leave = threading.Thread(target=session.close)
    leave.start()
    leave.join(60)
    assert not leave.is_alive()
    assert not server.ended.is_set()
