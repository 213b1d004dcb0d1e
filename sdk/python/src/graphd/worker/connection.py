"""A worker's connection, made anew when it has gone silent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from graphd._gen.v1.worker_service_pb2_grpc import WorkerServiceStub
from graphd.errors import GraphdError, UnauthenticatedError
from graphd.transport.errors import reason_of, to_graphd_error
from graphd.worker.process_end import has_waited_enough

_MAY_PASS = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "UNAUTHENTICATED")  # tokens are replaced
_LOST = "TASK_LEASE_LOST"
_LONGEST_PAUSE = 2.0


def _build_stub(channel: grpc.Channel) -> Any:
    return WorkerServiceStub(channel)  # type: ignore[no-untyped-call]


class Dialer(Protocol):
    """What makes the connections."""

    @property
    def revision(self) -> int:
        """Grows when there are new certificates, which only new connections use."""

    def open_channel(self) -> grpc.Channel:
        """A connection of its own."""


class WorkerConnection:
    """The calls of a session. Safe to use from several threads."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._open_channel()

    def _open_channel(self) -> None:
        self._revision = self._dialer.revision
        self._channel = self._dialer.open_channel()
        self.stub = _build_stub(self._channel)

    def reconnect(self) -> None:
        """Gives the connection up; calls under way are repeated on a new one."""
        with self._lock:
            if self._closed.is_set():
                return
            old = self._channel
            self._open_channel()
        old.close()

    def renew_certificates(self) -> None:
        """Connects anew if there are other certificates."""
        if self._dialer.revision != self._revision:
            self.reconnect()

    def call_until_answered(self, method: str, request: Any, lost: Callable[[], bool]) -> Any:
        """Repeats a call until the server has answered it, or the lease that it is for is lost.

        At the end of the program a server that is away is waited for a few seconds only.

        Whether it is lost, the stream knows: the call may reach another server than the stream, and
        that one knows less of the task. A server names each lease that it does not know to the stream.
        """
        pause = 0.05
        while True:
            stub = self.stub
            try:
                return getattr(stub, method)(request)
            except (grpc.RpcError, UnauthenticatedError) as error:
                told = error if isinstance(error, UnauthenticatedError) else to_graphd_error(error)
                given_up = told.code == "CANCELLED" and stub is not self.stub
                denied = reason_of(told) == _LOST
                if has_waited_enough() or self._closed.is_set() or not (given_up or denied or told.code in _MAY_PASS):
                    raise told from told.__cause__
                # After a broken call the repeated one may bring an answer all the same.
                if (denied or told.code in ("DEADLINE_EXCEEDED", "UNAUTHENTICATED")) and lost():
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
