"""One running attempt: its lease, its events, its memos and its calls."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from graphd import codec
from graphd._gen.v1 import event_pb2
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import TASK_EVENT
from graphd.runtime.replay import Place
from graphd.security import Target
from graphd.threads import memo_threads
from graphd.worker.kept_values import KeptValue

_CHANNELS = {"custom": event_pb2.CHANNEL_CUSTOM, "messages": event_pb2.CHANNEL_MESSAGES}
# Of the events that wait: what is more is dropped, or sent at once if it must be kept.
_MOST_WAITING = 1000
_MOST_BYTES = 1 << 20


def _do_nothing() -> None:
    """Cancels an attempt that has not begun, or has ended."""


def _never() -> bool:
    return False


class AttemptSession(Protocol):
    """What an attempt needs of its session."""

    target: Target
    store: Any
    """The store of the outermost graph of the session, None without one."""

    def send_request(self, request: ws.ConnectRequest) -> None:
        """Sends on the stream, soon; drops it when there is no stream."""

    def flush_soon(self, attempt: Attempt) -> None:
        """Has the events of an attempt flushed a moment later."""

    @property
    def is_sure(self) -> bool:
        """The attempt is not lost, as far as can be known at once."""

    def ask_leases(self) -> None:
        """Has the server say at once which attempts are lost."""

    def confirm_lease(self, attempt: Attempt) -> None:
        """Waits until it is known whether the attempt is lost; GraphdError if it is."""

    def begin_without_thread(self, size: int) -> None:
        """Counts a task that takes no thread, with the bytes of its input."""

    def end_without_thread(self, size: int) -> None:
        """Counts the end of one."""

    def record_memo(self, request: ws.RecordMemoRequest) -> ws.RecordMemoResponse:
        """Records a memo, however long it takes."""

    def call_graph(self, attempt: Attempt, request: Any) -> Any:
        """Runs a graph inside of the attempt."""


class Attempt:
    """The host of a task: see graphd.runtime.task.Host."""

    def __init__(
        self, assignment: pb.TaskAssignment, session: AttemptSession, kept: Mapping[str, KeptValue] | None = None
    ) -> None:
        self.assignment, self.token = assignment, assignment.lease.token
        self.kept: Mapping[str, KeptValue] = kept or {}
        """The channels whose values the worker keeps."""
        self.started, self.announced = time.monotonic(), False
        self.lost = self.stopped = False
        # Its result is taken: calls of code that goes on all the same have no answer to wait for.
        self.ended = False
        # Its run is not taken up again yet: another server may give the task away.
        self.undecided = False
        self.cancel: Callable[[], None] = _do_nothing
        self.muted: Callable[[], bool] = _never
        self._session = session
        self._wanted = set(assignment.emit)
        self._lock = threading.Lock()
        self._items: list[pb.EmitItem] = []
        self._dropped = self._sent = self._bytes = 0

    def end(self) -> None:
        """Its result is taken. It lets go of what it ran, which refers to it: else the collector of cycles had to find
        both, and that took longer than all the rest."""
        self.ended = True
        self.cancel, self.muted = _do_nothing, _never

    @property
    def is_gone(self) -> bool:
        """It has ended, or it was given to another worker."""
        return self.lost or self.ended

    @property
    def thread(self) -> str:
        """The thread of the run."""
        return str(self.assignment.thread_id)

    @property
    def run(self) -> str:
        """The id of the run."""
        return str(self.assignment.run_id)

    @property
    def task(self) -> str:
        """The id of the task, the same on every attempt."""
        return str(self.assignment.task_id)

    @property
    def target(self) -> Target:
        """The server that the task came from, and how it is called."""
        return self._session.target

    @property
    def store(self) -> Any:
        """The store of the graph that this worker serves."""
        return self._session.store

    def emit_event(self, channel: str, name: str, value: Any, durable: bool) -> None:
        if self._takes_event(channel, durable) and not self.muted():
            self._add_event(channel, name, value, durable)

    def emit_task_event(self, value: Any, durable: bool) -> None:
        if self._takes_event("custom", durable):
            self._add_event("custom", TASK_EVENT, value, durable)

    def _takes_event(self, channel: str, durable: bool) -> bool:
        return (durable or _CHANNELS[channel] in self._wanted) and not self.is_gone

    def _add_event(self, channel: str, name: str, value: Any, durable: bool) -> None:
        kind = _CHANNELS[channel]
        item = pb.EmitItem(channel=kind, name=name, value=codec.to_payload(value), durable=durable)
        size = item.ByteSize()
        if size > _MOST_BYTES and durable:
            raise ValueError(f"an event of {size} bytes can't be kept; at most {_MOST_BYTES} are allowed")
        with self._lock:
            full = len(self._items) >= _MOST_WAITING or self._bytes + size > _MOST_BYTES
            if full and not durable:
                self._dropped += 1
                return
            if full:
                self._send_events()
            if not self._items:
                self._session.flush_soon(self)
            self._items.append(item)
            self._bytes += size

    def take_events(self) -> tuple[pb.Emit | None, int]:
        """The events that wait, and how many were sent on the stream before."""
        with self._lock:
            return self._drain_events(), self._sent

    def flush_events(self) -> None:
        """Sends what waits on the stream."""
        with self._lock:
            self._send_events()

    def _drain_events(self) -> pb.Emit | None:
        if not self._items and not self._dropped:
            return None
        emit = pb.Emit(items=self._items, dropped=self._dropped)
        self._items, self._dropped, self._bytes = [], 0, 0
        return emit

    def _send_events(self) -> None:
        emit = self._drain_events()
        if emit is not None:
            self._sent += len(emit.items)
            self.announced = True
            self._send_update(pb.TaskUpdate(lease_token=self.token, emit=emit))

    def report_alive(self) -> None:
        self.announced = True
        update = pb.TaskUpdate(lease_token=self.token)
        update.alive.SetInParent()
        self._send_update(update)

    def _send_update(self, update: pb.TaskUpdate) -> None:
        self._session.send_request(ws.ConnectRequest(update=update))

    def confirm_lease(self) -> None:
        if not self._ready_to_act():
            self._session.confirm_lease(self)

    async def aconfirm_lease(self) -> None:
        if not self._ready_to_act():
            await memo_threads.run(self._session.confirm_lease, self)

    def _ready_to_act(self) -> bool:
        # A task that the server knows has begun stays here when the connection
        # breaks; one that was only offered goes to another worker at once.
        if not self.announced:
            self.report_alive()
        return not self.is_gone and not self.undecided and self._session.is_sure

    def record_memo(self, place: Place, value: Any) -> Any:
        request = ws.RecordMemoRequest(
            lease_token=self.token, scope=place.scope, key=place.key, index=place.index, value=codec.to_payload(value)
        )
        return codec.value_of(self._session.record_memo(request).value)

    async def arecord_memo(self, place: Place, value: Any) -> Any:
        return await memo_threads.run(self.record_memo, place, value)

    def begin_without_thread(self) -> None:
        """It takes no thread from now on."""
        self._session.begin_without_thread(self._size)

    def end_without_thread(self) -> None:
        """It takes one again, or has ended."""
        self._session.end_without_thread(self._size)

    @functools.cached_property
    def _size(self) -> int:
        """The bytes of its input. To count them is to encode it."""
        return self.assignment.ByteSize()

    def call_graph(self, request: Any) -> Any:
        return self._session.call_graph(self, request)
