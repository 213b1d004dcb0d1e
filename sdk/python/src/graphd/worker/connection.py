"""A worker's connection, made anew when it has gone silent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc

from graphd._gen.v1.worker_service_pb2_grpc import WorkerServiceStub
from graphd.errors import GraphdError
from graphd.transport.errors import reason_of, to_graphd_error

_MAY_PASS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_LOST = "TASK_LEASE_LOST"
_LONGEST_PAUSE = 2.0


def _build_stub(channel: grpc.Channel) -> Any:
    return WorkerServiceStub(channel)  # type: ignore[no-untyped-call]


class WorkerConnection:
    """The calls of a session. Safe to use from several threads."""

    def __init__(self, dial: Callable[[], grpc.Channel]) -> None:
        self._dial = dial
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._channel = dial()
        self.stub = _build_stub(self._channel)

    def reconnect(self) -> None:
        """Gives the connection up; calls under way are repeated on a new one."""
        with self._lock:
            if self._closed.is_set():
                return
            old, self._channel = self._channel, self._dial()
            self.stub = _build_stub(self._channel)
        old.close()

    def call_until_answered(self, method: str, request: Any, lost: Callable[[], bool]) -> Any:
        """Repeats a call until the server has answered it, or the lease that it is for is lost.

        Whether it is lost, the stream knows: the call may reach another server than the stream, and
        that one knows less of the task. A server names each lease that it does not know to the stream.
        """
        pause = 0.05
        while True:
            stub = self.stub
            try:
                return getattr(stub, method)(request)
            except grpc.RpcError as error:
                given_up = error.code() is grpc.StatusCode.CANCELLED and stub is not self.stub
                denied = reason_of(told := to_graphd_error(error)) == _LOST
                if self._closed.is_set() or not (given_up or denied or error.code() in _MAY_PASS):
                    raise told from None
                # After a broken call the repeated one may bring an answer all the same.
                if (denied or error.code() is grpc.StatusCode.DEADLINE_EXCEEDED) and lost():
                    raise GraphdError("the task was given to another worker", reason=_LOST) from None
            except ValueError:  # grpc's word for a channel that was closed just now
                if self._closed.is_set() or stub is self.stub:
                    raise
            self._closed.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def close(self) -> None:
        """Ends everything that waits for the server."""
        with self._lock:
            self._closed.set()
        self._channel.close()
