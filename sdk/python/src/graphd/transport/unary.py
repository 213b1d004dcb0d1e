"""Calls with one answer, described once and made by threads and by loops alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from graphd.transport.attempts import Attempts, Deadline
from graphd.transport.errors import to_graphd_error
from graphd.transport.server import Server, Stubs

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call: its method, its request, and what its answer means.

    Only a call that changes nothing, or has a request id, may be repeated.
    """

    select: Callable[[Stubs], Callable[..., Any]]
    request: Any
    read: Callable[[Any], T]
    repeatable: bool = True
    has_progressed: Callable[[], bool] = lambda: False
    """Whether an attempt that failed has done a part: the next ones get the full time again."""


def perform_call(server: Server, call: Call[T], deadline: Deadline, *, opened: bool) -> T:
    """Makes a call within its time, again while the server is away: for a short time if it
    may never have been there (opened)."""
    attempts = Attempts(opened=opened, deadline=deadline)
    while True:
        try:
            return call.read(call.select(server.stubs)(call.request, timeout=deadline.remaining()))
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        if not call.repeatable:
            deadline.check_problem(problem)
            raise problem
        if call.has_progressed():
            attempts = Attempts(opened=True, deadline=deadline)
        time.sleep(attempts.next_pause(problem))


async def aperform_call(server: Server, call: Call[T], deadline: Deadline, *, opened: bool) -> T:
    """Like perform_call, on the running loop."""
    attempts = Attempts(opened=opened, deadline=deadline)
    while True:
        try:
            return call.read(await call.select(server.astubs)(call.request, timeout=deadline.remaining()))
        except grpc.RpcError as error:
            problem = to_graphd_error(error)
        if not call.repeatable:
            deadline.check_problem(problem)
            raise problem
        if call.has_progressed():
            attempts = Attempts(opened=True, deadline=deadline)
        await asyncio.sleep(attempts.next_pause(problem))
