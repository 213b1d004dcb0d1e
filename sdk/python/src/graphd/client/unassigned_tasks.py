"""Tells a caller who waits that no worker can run a task of the run."""

from __future__ import annotations

import logging
import threading

import grpc

from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.client.connection import GraphConnection
from graphd.constants import START
from graphd.names import public_name

log = logging.getLogger("graphd.client")

_PATIENCE = 1.0  # seconds; workers that connect again take less
_TAKEN = (pb.TaskChange.PHASE_STARTED, pb.TaskChange.PHASE_SUCCEEDED, pb.TaskChange.PHASE_CANCELLED)


class UnassignedTasks:
    """The tasks of one call that no worker could take when they were due."""

    def __init__(self, connection: GraphConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._timers: dict[str, threading.Timer] = {}
        self._run = run_pb2.Run()

    def observe_event(self, event: pb.Event) -> None:
        """Takes notice of an event of the call."""
        if event.HasField("opened"):
            self._run = event.opened.run
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
            advice = self._advise_move(event.thread_id)
            log.warning("thread %r, %s: %s. %s", event.thread_id, _describe_task(event.node), why, advice)

    def _advise_move(self, thread_id: str) -> str:
        graph, version = self._run.graph or "GRAPH", self._run.graph_version
        own = self._connection.version(graph)
        target = own if own and own != version else "VERSION"
        return (
            "A thread stays on the version of its graph that it began with: nodes, edges, keys, policies, and drift of "
            f"compile. Start a worker that serves {f'version {version}' if version else 'this version'}, or move the "
            f"thread to a version that is served, with `graphd run {graph}@{target} --thread {thread_id} "
            "--on-busy cancel`"
        )

    def _was_taken(self, event: pb.Event) -> bool:
        # The stream of the call need not show when tasks begin.
        request = gs.WatchRequest(thread_id=event.thread_id, run_id=event.run_id, after=event.cursor)
        request.filter.channels.append(pb.CHANNEL_TASKS)
        try:
            seen = self._connection.server.stubs.graphs.Watch(request, timeout=30)
            return any(e.task_id == event.task_id and e.task.phase in _TAKEN for e in seen)
        except grpc.RpcError:
            return False


def _describe_task(node: str) -> str:
    """What a task runs. The server names neither the condition nor, of a reducer, the key."""
    if not node:
        return "the reducer of a key"
    return "a condition after START" if node == START else f"node {public_name(node)!r}"


__all__ = ["UnassignedTasks"]
