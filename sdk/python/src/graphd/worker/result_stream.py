"""Results that go on the stream of a session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.worker.attempt import Attempt
from graphd.worker.runner import Job

FEATURE = "complete"
_LARGEST = 64 << 10  # bytes; a message that is too large would end the stream
_MOMENT = 0.05  # seconds; the server keeps an answer back for less
_QUIET = 1.0  # seconds without events, so that no result has to stand behind them


class PendingResult:
    """A result that is under way, and what its thread, if it has one, is to do next."""

    def __init__(self, attempt: Attempt, request: ws.CompleteTaskRequest, *, has_thread: bool = True) -> None:
        self.attempt, self.request = attempt, request
        self._lock, self._answered = threading.Lock(), threading.Lock()
        self._answered.acquire()
        self._next: Job | None = None
        self._left = not has_thread

    def wait_for_next(self) -> Job | None:
        """Waits a moment for what is next; None if nothing is known by then."""
        if not self._answered.acquire(timeout=_MOMENT):
            with self._lock:
                self._left = True
        return self._next

    def set_next(self, job: Job | None) -> bool:
        """Sets what is next; False if the thread of the result waits no longer."""
        with self._lock:
            if self._left:
                return False
            self._next = job
        self._answered.release()
        return True


class ResultStream:
    """Sends results on the stream while it is quiet, which saves a call for
    each, and keeps them until they are answered. Safe to use from several
    threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._send: Callable[[ws.ConnectRequest], None] | None = None
        self._waiting: dict[bytes, PendingResult] = {}
        self._last_traffic = -_QUIET

    def open_stream(self, send: Callable[[ws.ConnectRequest], None]) -> None:
        """The stream takes results from now on."""
        with self._lock:
            self._send = send

    def close_stream(self) -> list[PendingResult]:
        """The stream has ended; returns the results that it did not answer."""
        with self._lock:
            self._send, waiting, self._waiting = None, self._waiting, {}
            return list(waiting.values())

    def record_traffic(self) -> None:
        """Events are sent on the stream."""
        self._last_traffic = time.monotonic()

    def send_result(
        self, attempt: Attempt, request: ws.CompleteTaskRequest, *, has_thread: bool = True
    ) -> PendingResult | None:
        """Sends a result; None if it has to go by a call."""
        if time.monotonic() - self._last_traffic < _QUIET or request.ByteSize() > _LARGEST:
            return None
        result, message = PendingResult(attempt, request, has_thread=has_thread), ws.ConnectRequest(complete=request)
        with self._lock:
            if self._send is None:
                return None
            self._waiting[attempt.token] = result
            self._send(message)
            return result

    def take_answered(self, token: bytes) -> PendingResult | None:
        """Gives a result up that was answered; None if it is not under way."""
        with self._lock:
            return self._waiting.pop(token, None)
