"""Makes the calls of a client, within its time."""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from graphd.client.connection import GraphConnection
from graphd.security import Security
from graphd.transport.attempts import Deadline
from graphd.transport.server import Server, server_at
from graphd.transport.unary import Call, aperform_call, perform_call

T = TypeVar("T")
Self = TypeVar("Self", bound="ServerCaller")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list, and the token of the next; "" after the last."""

    entries: list[T]
    next_token: str


class ServerCaller:
    """A server, and how long its answers may take."""

    def __init__(self, server: Server, timeout: float | None) -> None:
        Deadline(timeout)  # refuses what is none
        self.server, self.timeout = server, timeout
        self._opened = False

    def with_timeout(self: Self, timeout: float | None) -> Self:
        """The same server, with another time."""
        Deadline(timeout)
        other = copy.copy(self)
        other.timeout = timeout
        return other

    @property
    def connection(self) -> GraphConnection:
        """The server, as the parts take it that know graphs."""
        return GraphConnection(self.server, {})


def find_server(address: str | None, security: Security | None) -> Server:
    """The server that the arguments of a client and the environment name."""
    given = address or os.environ.get("GRAPHD_SERVER")
    if not given:
        raise ValueError("server is missing: give host:port, or set GRAPHD_SERVER")
    return server_at(given, (security or Security()).with_environment(os.environ))


class Caller(ServerCaller):
    """Makes calls in the thread of the program."""

    def perform(self, call: Call[T]) -> T:
        """Makes a call."""
        answer = perform_call(self.server, call, Deadline(self.timeout), opened=self._opened)
        self._opened = True
        return answer

    def list_entries(self, build: Callable[[str], Call[Page[T]]]) -> Iterator[T]:
        """All entries of a list, page by page. ``build`` makes the call for a page from its token."""
        token, more = "", True
        while more:
            page = self.perform(build(token))
            yield from page.entries
            token = page.next_token
            more = bool(token)


class AsyncCaller(ServerCaller):
    """Makes calls on the running loop."""

    async def perform(self, call: Call[T]) -> T:
        """Makes a call."""
        answer = await aperform_call(self.server, call, Deadline(self.timeout), opened=self._opened)
        self._opened = True
        return answer

    async def list_entries(self, build: Callable[[str], Call[Page[T]]]) -> AsyncIterator[T]:
        """Like Caller.list_entries."""
        token, more = "", True
        while more:
            page = await self.perform(build(token))
            for entry in page.entries:
                yield entry
            token = page.next_token
            more = bool(token)
