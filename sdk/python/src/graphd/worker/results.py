"""Results that go on the stream of a session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.worker.attempt import Attempt

FEATURE = "complete"
_LARGEST = 64 << 10  # bytes; a message that is too large would end the stream
_QUIET = 1.0  # seconds without events, so that no result has to stand behind them


@dataclass(frozen=True)
class Result:
    """A result that is under way."""

    attempt: Attempt
    request: ws.CompleteTaskRequest


class Results:
    """Sends results on the stream while it is quiet, which saves a call for
    each, and keeps them until they are answered. Safe to use from several
    threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._send: Callable[[ws.ConnectRequest], None] | None = None
        self._waiting: dict[bytes, Result] = {}
        self._noise = -_QUIET

    def open(self, send: Callable[[ws.ConnectRequest], None]) -> None:
        """The stream takes results from now on."""
        with self._lock:
            self._send = send

    def close(self) -> list[Result]:
        """The stream has ended; returns the results that it did not answer."""
        with self._lock:
            self._send, waiting, self._waiting = None, self._waiting, {}
            return list(waiting.values())

    def noise(self) -> None:
        """Events are sent on the stream."""
        self._noise = time.monotonic()

    def send(self, attempt: Attempt, request: ws.CompleteTaskRequest) -> bool:
        """Sends a result; False if it has to go by a call."""
        if time.monotonic() - self._noise < _QUIET or request.ByteSize() > _LARGEST:
            return False
        with self._lock:
            if self._send is None:
                return False
            self._waiting[attempt.token] = Result(attempt, request)
            self._send(ws.ConnectRequest(complete=request))
            return True

    def answered(self, token: bytes) -> Result | None:
        """Gives a result up that was answered; None if it is not under way."""
        with self._lock:
            return self._waiting.pop(token, None)
