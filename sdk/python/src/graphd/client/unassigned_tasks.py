"""Tells a caller who waits that no worker can run a task of the run."""

from __future__ import annotations

import logging
import threading

import grpc

from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.connection import GraphConnection
from graphd.names import public_name

log = logging.getLogger("graphd.client")

_PATIENCE = 1.0  # seconds; workers that connect again take less
_TAKEN = (pb.TaskChange.PHASE_STARTED, pb.TaskChange.PHASE_SUCCEEDED, pb.TaskChange.PHASE_CANCELLED)
_ADVICE = (
    "A thread stays on the version of its graph that it began with: nodes, edges, keys, policies, and drift of "
    "compile. Start a worker with the graph as it was, or begin a new thread"
)


class UnassignedTasks:
    """The tasks of one call that no worker could take when they were due."""

    def __init__(self, connection: GraphConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._timers: dict[str, threading.Timer] = {}

    def observe_event(self, event: pb.Event) -> None:
        """Takes notice of an event of the call."""
        if not event.HasField("task"):
            return
        if event.task.phase == pb.TaskChange.PHASE_UNASSIGNED:
            timer = threading.Timer(_PATIENCE, self._warn_caller, [event])
            timer.daemon = True
            with self._lock:
                self._timers[event.task_id] = timer
            timer.start()
        elif event.task.phase in _TAKEN:
            with self._lock:
                timer_of = self._timers.pop(event.task_id, None)
            if timer_of is not None:
                timer_of.cancel()

    def close(self) -> None:
        """The caller waits no longer."""
        with self._lock:
            timers, self._timers = list(self._timers.values()), {}
        for timer in timers:
            timer.cancel()

    def _warn_caller(self, event: pb.Event) -> None:
        if self._was_taken(event):
            return
        with self._lock:
            waits = self._timers.pop(event.task_id, None) is not None
        if waits:
            why = event.task.failure.message
            log.warning("thread %r, node %r: %s. %s", event.thread_id, public_name(event.node), why, _ADVICE)

    def _was_taken(self, event: pb.Event) -> bool:
        # The stream of the call need not show when tasks begin.
        request = gs.WatchRequest(thread_id=event.thread_id, run_id=event.run_id, after=event.cursor)
        request.filter.channels.append(pb.CHANNEL_TASKS)
        try:
            seen = self._connection.server.stubs.graphs.Watch(request, timeout=30)
            return any(e.task_id == event.task_id and e.task.phase in _TAKEN for e in seen)
        except grpc.RpcError:
            return False


__all__ = ["UnassignedTasks"]
