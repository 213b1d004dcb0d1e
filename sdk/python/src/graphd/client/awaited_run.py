"""Starts a run of which only the end matters: one call, where a stream takes a message for each step of its life."""

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
        self.call = gs.StartRunRequest(run=request.run, request_id=request.request_id)
        self.call.wait.seconds = _WAIT
        self._backoff, self._begun = Backoff(), time.monotonic()

    def next_pause(self, problem: GraphdError) -> float:
        """Seconds to wait before the call is repeated; raises the problem when it is not."""
        if not is_transient(problem):
            raise problem
        began, self._begun = self._begun, time.monotonic()
        if problem.reason or self._begun - began > _REFUSAL:
            return self._backoff.next_pause(problem)
        return self._backoff.next_pause(problem, UNOPENED)


def is_awaited(request: Any, *, only_end: bool) -> bool:
    """Whether a call can wait for the end of its run. A run that goes on with a state is known by the server alone."""
    return only_end and isinstance(request, gs.StreamRequest) and request.run.HasField("input")


def name_run(request: gs.StreamRequest) -> str:
    """The id of the run: a call that waits for its end must know it before, to cancel it."""
    request.run.run_id = request.run.run_id or request.request_id
    return request.run.run_id


def start_and_wait(server: Server, request: gs.StreamRequest) -> run_pb2.Run:
    """The run of a request when it has stopped, or as it is when there is more to tell."""
    start = _AwaitedStart(request)
    while True:
        try:
            run: run_pb2.Run = call_unary(server.stubs.graphs.StartRun, start.call)
            return run
        except GraphdError as problem:
            time.sleep(start.next_pause(problem))


async def astart_and_wait(server: Server, request: gs.StreamRequest) -> run_pb2.Run:
    """Like start_and_wait, on the running loop."""
    start = _AwaitedStart(request)
    while True:
        try:
            run: run_pb2.Run = await acall_unary(server.astubs.graphs.StartRun, start.call)
            return run
        except GraphdError as problem:
            await asyncio.sleep(start.next_pause(problem))


def build_watch(request: gs.StreamRequest, run: run_pb2.Run) -> gs.WatchRequest | None:
    """The request that tells the rest of a run, None when it has stopped."""
    if run.state not in _UNDER_WAY:
        return None
    return gs.WatchRequest(thread_id=run.thread_id, run_id=run.run_id, filter=request.filter, follow=True)


__all__ = ["astart_and_wait", "build_watch", "is_awaited", "name_run", "start_and_wait"]
