"""The calls of a worker are repeated as long as they are of use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from graphd._gen.client import status_pb2 as pb
from graphd.errors import GraphdError
from graphd.transport.server import server_at
from graphd.worker.connection import WorkerConnection


class Refused(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode) -> None:
        self.code = lambda: code
        self.details = lambda: "refused"
        self.trailing_metadata: Any = lambda: ()


def test_a_call_whose_lease_is_lost_is_not_repeated_where_no_server_knows_the_task() -> None:
    answers: list[Any] = [
        Refused(grpc.StatusCode.DEADLINE_EXCEEDED),
        Refused(grpc.StatusCode.UNAVAILABLE),
        Refused(grpc.StatusCode.DEADLINE_EXCEEDED),
    ]
    lost = iter([False, True])

    def complete(request: Any) -> Any:
        raise answers.pop(0)

    connection = WorkerConnection(server_at("127.0.0.1:1"))
    connection.stub = SimpleNamespace(CompleteTask=complete)
    try:
        with pytest.raises(GraphdError) as refused:
            connection.call_until_answered("CompleteTask", None, lambda: next(lost))
    finally:
        connection.close()
    assert refused.value.reason == "TASK_LEASE_LOST"
    assert not answers


class Denied(Refused):
    def __init__(self) -> None:
        super().__init__(grpc.StatusCode.FAILED_PRECONDITION)
        status = pb.Status(code=9, message="the lease is not valid any more")
        info = pb.ErrorInfo(reason="TASK_LEASE_LOST", domain="graphd.dev")
        status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString())
        text = status.SerializeToString()
        self.trailing_metadata = lambda: (("grpc-status-details-bin", text),)


def test_a_server_without_the_stream_can_not_say_that_a_lease_is_lost() -> None:
    answers: list[Any] = [Denied(), Denied(), "taken"]
    connection = WorkerConnection(server_at("127.0.0.1:1"))
    connection.stub = SimpleNamespace(CallGraph=lambda request: given(answers))
    try:
        assert connection.call_until_answered("CallGraph", None, lambda: False) == "taken"
    finally:
        connection.close()


def test_a_lease_that_the_stream_has_named_lost_is_lost() -> None:
    answers: list[Any] = [Denied(), Denied(), "taken"]
    lost = iter([False, True])
    connection = WorkerConnection(server_at("127.0.0.1:1"))
    connection.stub = SimpleNamespace(CallGraph=lambda request: given(answers))
    try:
        with pytest.raises(GraphdError) as refused:
            connection.call_until_answered("CallGraph", None, lambda: next(lost))
    finally:
        connection.close()
    assert refused.value.reason == "TASK_LEASE_LOST"
    assert answers == ["taken"]


def given(answers: list[Any]) -> Any:
    answer = answers.pop(0)
    if isinstance(answer, Refused):
        raise answer
    return answer


def test_a_call_is_repeated_though_the_lease_is_lost_when_it_broke() -> None:
    answers: list[Any] = [Refused(grpc.StatusCode.UNAVAILABLE), "taken"]

    def complete(request: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return answer

    connection = WorkerConnection(server_at("127.0.0.1:1"))
    connection.stub = SimpleNamespace(CompleteTask=complete)
    try:
        assert connection.call_until_answered("CompleteTask", None, lambda: True) == "taken"
    finally:
        connection.close()
