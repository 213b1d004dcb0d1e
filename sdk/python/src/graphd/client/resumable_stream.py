"""What is known of a run that is followed, so that another stream can go on.

A run belongs to the store, not to a connection: a stream that breaks, or whose
server leaves, is continued by Watch after the last event that was seen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from typing import Any

import grpc

from graphd._gen.v1 import event_pb2, payload_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.errors import GraphdError, ServerUnavailableError
from graphd.transport.attempts import NO_DEADLINE, Deadline
from graphd.transport.backoff import UNOPENED, Backoff, is_transient
from graphd.transport.errors import to_graphd_error
from graphd.transport.server import Server

_MOVES_ON = (event_pb2.EndOfStream.CAUSE_DRAINING, event_pb2.EndOfStream.CAUSE_SLOW_CONSUMER)


def continues_elsewhere(event: event_pb2.Event) -> bool:
    """Whether a stream ends though there is more to come, on another one."""
    return event.HasField("end") and event.end.cause in _MOVES_ON


class ResumableStream:
    """The streams of one call: of a StreamRequest, a ResumeRequest, or a WatchRequest for one run.

    ``served`` says that the server has answered the caller before.
    """

    def __init__(self, request: Any, deadline: Deadline = NO_DEADLINE, *, served: bool = False) -> None:
        self._request, self._deadline, self._served = request, deadline, served
        self._watch: gs.WatchRequest | None = None  # continues the first stream
        self._cursor = payload_pb2.Cursor()
        self._backoff = Backoff()

    def open_next(self, stubs: Any) -> Any:
        """The next stream."""
        timeout = self._deadline.remaining()
        if self._watch is not None:
            self._watch.after.CopyFrom(self._cursor)
            return stubs.Watch(self._watch, timeout=timeout)
        if isinstance(self._request, gs.WatchRequest):
            return stubs.Watch(self._request, timeout=timeout)
        if isinstance(self._request, gs.ResumeRequest):
            return stubs.Resume(self._request, timeout=timeout)
        return stubs.Stream(self._request, timeout=timeout)

    def record_event(self, event: event_pb2.Event) -> bool:
        """Notes how far the stream has come. False: the event is not to be shown."""
        if event.HasField("end"):
            self._cursor.CopyFrom(event.end.resume_at)
        elif event.HasField("heartbeat"):
            self._cursor.CopyFrom(event.heartbeat.scanned)
        elif event.HasField("cursor"):
            self._cursor.CopyFrom(event.cursor)
        if not event.HasField("opened"):
            self._backoff.reset()
            return not continues_elsewhere(event)
        if self._watch is not None:
            return False
        self._watch = gs.WatchRequest(
            thread_id=event.thread_id, run_id=event.run_id, filter=self._request.filter, follow=True
        )
        return True

    def is_last(self, event: event_pb2.Event) -> bool:
        """Whether there will be nothing after the event."""
        return event.HasField("end") and not continues_elsewhere(event)

    def next_pause(self, problem: GraphdError | None) -> float:
        """Seconds to wait before the next stream; raises the problem when there is none."""
        if problem is not None:
            self._deadline.check_problem(problem)
        pause = self._choose_pause(problem)
        return pause if problem is None else self._deadline.check_pause(pause, problem)

    def _choose_pause(self, problem: GraphdError | None) -> float:
        if problem is None:
            text = "the server has left and none has taken its place"
            return self._backoff.next_pause(ServerUnavailableError(text, reason="SERVER_DRAINING", code="UNAVAILABLE"))
        if not (self._served or self._watch) and is_transient(problem) and not problem.reason:
            # The server was there when the graph was compiled. The call may be repeated: it has a request id.
            return self._backoff.next_pause(problem, UNOPENED)
        if is_transient(problem):
            return self._backoff.next_pause(problem)
        raise problem


def read_events(
    server: Server, request: Any, deadline: Deadline = NO_DEADLINE, *, served: bool = False
) -> Generator[event_pb2.Event, None, None]:
    """The events of a call, over all its streams."""
    stream = ResumableStream(request, deadline, served=served)
    while True:
        call, problem = stream.open_next(server.stubs.graphs), None
        try:
            for event in call:
                if stream.record_event(event):
                    yield event
                if stream.is_last(event):
                    return
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        finally:
            call.cancel()
        time.sleep(stream.next_pause(problem))


async def aread_events(
    server: Server, request: Any, deadline: Deadline = NO_DEADLINE, *, served: bool = False
) -> AsyncGenerator[event_pb2.Event, None]:
    """Like read_events, on the running loop."""
    stream = ResumableStream(request, deadline, served=served)
    while True:
        call, problem = stream.open_next(server.astubs.graphs), None
        try:
            async for event in call:
                if stream.record_event(event):
                    yield event
                if stream.is_last(event):
                    return
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        finally:
            call.cancel()
        await asyncio.sleep(stream.next_pause(problem))
