"""A run whose caller waits for its stop: one call starts it and brings the stop, in place of a stream with a message
for each step of its life."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.errors import GraphdError
from graphd.transport.backoff import UNOPENED, Backoff, is_transient
from graphd.transport.server import Server, acall_unary, call_unary

_WAIT = 30  # seconds; a run that takes longer is followed
_REFUSAL = 0.5  # seconds that a call takes at most which no server has got
_UNDER_WAY = (run_pb2.RUN_STATE_QUEUED, run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_CANCELLING)


class _AwaitedStart:
    """A StreamRequest as a call that waits for the stop of its run. It is repeated with its request id, which starts
    one run."""

    def __init__(self, request: gs.StreamRequest) -> None:
        self._request = gs.StartRunRequest(run=request.run, request_id=request.request_id)
        self._request.wait.seconds = _WAIT
        self._backoff, self._was_served, self._called = Backoff(), False, 0.0

    def next_request(self) -> gs.StartRunRequest:
        """The request of the next call, which begins now."""
        self._called = time.monotonic()
        return self._request

    def next_pause(self, problem: GraphdError) -> float:
        """Seconds to wait before the call is repeated; raises the problem when it is not."""
        if not is_transient(problem):
            raise problem
        self._was_served |= bool(problem.reason) or time.monotonic() - self._called > _REFUSAL
        return self._backoff.next_pause(problem) if self._was_served else self._backoff.next_pause(problem, UNOPENED)


def is_awaited(request: Any, *, only_end: bool) -> bool:
    """Whether a call can wait for the end of its run. A run that goes on with a state is known by the server alone."""
    return only_end and isinstance(request, gs.StreamRequest) and request.run.HasField("input")


def start_and_wait(server: Server, request: gs.StreamRequest) -> run_pb2.Run:
    """The run of a request when it has stopped, or as it is when there is more to tell."""
    start = _AwaitedStart(request)
    while True:
        try:
            run: run_pb2.Run = call_unary(server.stubs.graphs.StartRun, start.next_request())
            return run
        except GraphdError as problem:
            time.sleep(start.next_pause(problem))


async def astart_and_wait(server: Server, request: gs.StreamRequest) -> run_pb2.Run:
    """Like start_and_wait, on the running loop."""
    start = _AwaitedStart(request)
    while True:
        try:
            run: run_pb2.Run = await acall_unary(server.astubs.graphs.StartRun, start.next_request())
            return run
        except GraphdError as problem:
            await asyncio.sleep(start.next_pause(problem))


def build_watch(request: gs.StreamRequest, run: run_pb2.Run, waited: float) -> gs.WatchRequest | None:
    """The request that tells the rest of a run after so many seconds, None when it has stopped.

    After the whole wait that is what comes next: the log of a long run may have lost its beginning. Before, it is
    all that there is, for it shows tasks that no worker can run.
    """
    if run.state not in _UNDER_WAY:
        return None
    watch = gs.WatchRequest(thread_id=run.thread_id, run_id=run.run_id, filter=request.filter, follow=True)
    (watch.now if waited >= _WAIT else watch.beginning).SetInParent()
    return watch


__all__ = ["astart_and_wait", "build_watch", "is_awaited", "start_and_wait"]
