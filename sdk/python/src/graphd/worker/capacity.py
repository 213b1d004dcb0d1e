"""How many tasks the server may give to a worker at the same time."""

from __future__ import annotations

import threading

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.values.worker_limits import WorkerLimits

_STEPS = 8  # of the threads; a credit for each coroutine would cost a message for each


class Capacity:
    """Counts what runs, and the slots that the server is told of. Safe to use from several threads.

    A task of a plain function takes a thread. A coroutine takes none, and neither does a
    task that waits for the reader of its run, so each adds a slot: as many threads are
    free for other tasks as before. The same holds for a task that waits for the graph it
    calls, which may need a slot here.
    """

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._blocked = self._coroutines = self._bytes = 0
        self._added = 0  # slots for coroutines
        self._told = self._revision = 0

    @property
    def threads(self) -> int:
        """How many threads may be needed now."""
        return self._limits.threads + self._blocked

    def change_blocked(self, by: int) -> ws.Credit:
        """Counts a task that begins (+1) or ends (-1) to wait for a graph."""
        with self._lock:
            self._blocked += by
            return self._next_credit()

    def begin_without_thread(self, size: int) -> ws.Credit | None:
        """Counts such a task, with the bytes of its input; returns what to tell the server, if anything."""
        return self._change_coroutines(+1, size)

    def end_without_thread(self, size: int) -> ws.Credit | None:
        """Counts the end of one."""
        return self._change_coroutines(-1, -size)

    def _change_coroutines(self, by: int, size: int) -> ws.Credit | None:
        with self._lock:
            self._coroutines, self._bytes = self._coroutines + by, self._bytes + size
            room = min(self._coroutines, self._limits.coroutines)
            if self._bytes > self._limits.coroutine_bytes:
                room = min(room, self._added)
            self._added = room
            step = max(self._limits.threads // _STEPS, 1)
            # More slots are told of early, fewer late: that the server knows too many costs little.
            if self._total() >= self._told + step or self._total() <= self._told - self._limits.threads:
                return self._next_credit()
            return None

    def current_credit(self) -> ws.Credit:
        """What the server is told at the beginning of a stream."""
        with self._lock:
            return self._next_credit()

    def _total(self) -> int:
        return self._limits.threads + self._blocked + self._added

    def _next_credit(self) -> ws.Credit:
        self._revision, self._told = self._revision + 1, self._total()
        return ws.Credit(total_slots=self._told, revision=self._revision)
