"""What waits to be sent on one stream of a session."""

from __future__ import annotations

import queue

from graphd._gen.v1 import worker_service_pb2 as ws

BATCHES = "batch"  # the feature of workers and servers
_MOST = 64  # messages in one
_MOST_BYTES = 64 << 10


class Outbox:
    """Sends what waits in one message, where the server takes that: each costs the threads
    of gRPC much more than its content. Nothing waits for more to come.

    Any thread puts; the one of the stream takes.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[ws.ConnectRequest | None] = queue.SimpleQueue()
        self._held: ws.ConnectRequest | None = None  # is the next one: there was no room for it
        self._most_bytes = 0
        self._is_closed = False

    def put(self, request: ws.ConnectRequest) -> None:
        """Adds a message."""
        self._waiting.put(request)

    def close(self) -> None:
        """Adds the end: nothing that is put later is sent."""
        self._waiting.put(None)

    def allow_batches(self, max_message_bytes: int) -> None:
        """The server takes several messages in one, of so many bytes."""
        self._most_bytes = min(_MOST_BYTES, max_message_bytes // 2)

    def take(self, timeout: float) -> ws.ConnectRequest | None:
        """The next message to send, None after the end; queue.Empty is raised when none comes in time."""
        first, self._held = self._held, None
        if first is None:
            first = self._get(timeout)
        if first is None or not self._most_bytes or self._waiting.empty():
            return first
        return self._add_waiting(first)

    def _add_waiting(self, first: ws.ConnectRequest) -> ws.ConnectRequest:
        """A message with those that wait behind it, as many as there is room for."""
        requests, size = [first], first.ByteSize()
        while len(requests) < _MOST and not self._waiting.empty():
            request = self._get(0)
            if request is None:
                break
            size += request.ByteSize()
            if size > self._most_bytes:
                self._held = request
                break
            requests.append(request)
        if len(requests) == 1:
            return first
        message = ws.ConnectRequest()
        message.batch.requests.extend(requests)
        return message

    def _get(self, timeout: float) -> ws.ConnectRequest | None:
        if self._is_closed:
            return None
        request = self._waiting.get(timeout=timeout)
        self._is_closed = request is None
        return request


__all__ = ["BATCHES", "Outbox"]
