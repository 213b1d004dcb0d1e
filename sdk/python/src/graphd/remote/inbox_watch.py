"""Follows the questions of all threads, over broken connections and restarts of servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from typing import Any

import grpc

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.errors import GraphdError
from graphd.remote.question import QuestionChange, read_change
from graphd.transport.attempts import Attempts, Deadline
from graphd.transport.errors import to_graphd_error
from graphd.transport.server import Server, Stubs

MAX_CHANGES = 64
"""Changes that a server sends in one message."""


class ResumableWatch:
    """The streams of one watch."""

    def __init__(self, condition: str, after: str, deadline: Deadline, *, start_now: bool = False) -> None:
        if after and start_now:
            raise ValueError("start_now is True, and the watch begins after the change of after: give one of them")
        self.request = ins.WatchInterruptsRequest(
            filter=condition, resume_token=after, start_now=start_now, max_changes=MAX_CHANGES
        )
        self.deadline = deadline
        self._attempts: Attempts | None = None
        self._has_answer = False
        self._initial: list[ins.InterruptChange] = []

    def open_next(self, stubs: Stubs) -> Any:
        """The next stream."""
        self._initial = []
        return stubs.interrupts.WatchInterrupts(self.request, timeout=self.deadline.remaining())

    def record_changes(self, message: ins.InterruptChange) -> list[QuestionChange]:
        """Notes how far the watch has come, and returns what is to be shown.

        The initial questions are shown when all of them are there: a stream that breaks among them begins anew,
        and a question that is closed meanwhile would be missing there.
        """
        self._has_answer, self._attempts = True, None
        changes = list(message.changes) or ([message] if message.HasField("interrupt") else [])
        if not message.resume_token:
            self._initial += changes
            return []
        before, self.request.resume_token = self.request.resume_token, message.resume_token
        self.request.start_now = False
        shown = [read_change(one, "", is_initial=True) for one in self._initial]
        self._initial = []
        shown += [read_change(one, before, is_initial=False) for one in changes[:-1]]
        shown += [read_change(one, message.resume_token, is_initial=False) for one in changes[-1:]]
        return shown

    def next_pause(self, problem: GraphdError) -> float:
        """Seconds to wait before the next stream; raises the problem when there is none."""
        self._attempts = self._attempts or Attempts(opened=self._has_answer, deadline=self.deadline)
        return self._attempts.next_pause(problem)


def read_changes(server: Server, watch: ResumableWatch) -> Generator[QuestionChange, None, None]:
    """The changes of a watch, over all its streams."""
    while True:
        call = watch.open_next(server.stubs)
        try:
            for message in call:
                yield from watch.record_changes(message)
            problem = _ended()
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        finally:
            call.cancel()
        time.sleep(watch.next_pause(problem))


async def aread_changes(server: Server, watch: ResumableWatch) -> AsyncGenerator[QuestionChange, None]:
    """Like read_changes, on the running loop."""
    while True:
        call = watch.open_next(server.astubs)
        try:
            async for message in call:
                for shown in watch.record_changes(message):
                    yield shown
            problem = _ended()
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        finally:
            call.cancel()
        await asyncio.sleep(watch.next_pause(problem))


def _ended() -> GraphdError:
    return GraphdError("the server has ended the watch", reason="SERVER_DRAINING", code="UNAVAILABLE")
