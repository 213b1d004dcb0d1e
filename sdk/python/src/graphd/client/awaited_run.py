"""Starts a run of which only the end matters: one call, where a stream takes a message for each step of its life."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Generator
from typing import Any

from graphd._gen.v1 import event_pb2, run_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.resumable_stream import aread_events, read_events
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
        self._filter = request.filter
        self._backoff, self._begun = Backoff(), time.monotonic()

    def next_pause(self, problem: GraphdError) -> float:
        """Seconds to wait before the call is repeated; raises the problem when it is not."""
        if not is_transient(problem):
            raise problem
        began, self._begun = self._begun, time.monotonic()
        if problem.reason or self._begun - began > _REFUSAL:
            return self._backoff.next_pause(problem)
        return self._backoff.next_pause(problem, UNOPENED)

    def build_watch(self, run: run_pb2.Run) -> gs.WatchRequest:
        """The request that follows a run which has not stopped."""
        return gs.WatchRequest(thread_id=run.thread_id, run_id=run.run_id, filter=self._filter, follow=True)


def _build_end(run: run_pb2.Run) -> event_pb2.Event:
    end = event_pb2.EndOfStream(cause=event_pb2.EndOfStream.CAUSE_RUN_STOPPED, run=run)
    return event_pb2.Event(thread_id=run.thread_id, run_id=run.run_id, end=end)


def is_awaited(request: Any, *, only_end: bool) -> bool:
    """Whether a call can wait for the end of its run. A run that goes on with a state is known by the server alone."""
    return only_end and isinstance(request, gs.StreamRequest) and request.run.HasField("input")


def name_run(request: gs.StreamRequest) -> str:
    """The id of the run: a call that waits for its end must know it before, to cancel it."""
    request.run.run_id = request.run.run_id or uuid.uuid4().hex
    return request.run.run_id


def read_end(server: Server, request: gs.StreamRequest) -> Generator[event_pb2.Event, None, None]:
    """The last event of a call, and what a caller is told of a run that takes long."""
    start = _AwaitedStart(request)
    while True:
        try:
            run = call_unary(server.stubs.graphs.StartRun, start.call)
            break
        except GraphdError as problem:
            time.sleep(start.next_pause(problem))
    if run.state in _UNDER_WAY:
        yield from read_events(server, start.build_watch(run))
    else:
        yield _build_end(run)


async def aread_end(server: Server, request: gs.StreamRequest) -> AsyncGenerator[event_pb2.Event, None]:
    """Like read_end, on the running loop."""
    start = _AwaitedStart(request)
    while True:
        try:
            run = await acall_unary(server.astubs.graphs.StartRun, start.call)
            break
        except GraphdError as problem:
            await asyncio.sleep(start.next_pause(problem))
    if run.state in _UNDER_WAY:
        async for event in aread_events(server, start.build_watch(run)):
            yield event
    else:
        yield _build_end(run)


__all__ = ["aread_end", "is_awaited", "name_run", "read_end"]
