"""Clients of a server that have no graph and no nodes."""

from __future__ import annotations

import copy

from graphd.remote.caller import AsyncCaller, Caller, find_server
from graphd.remote.graphs import AsyncGraphs, Graphs
from graphd.remote.inbox import AsyncInbox, Inbox
from graphd.remote.runs import AsyncRuns, Runs
from graphd.remote.threads import AsyncThreads, Threads
from graphd.security import Security

TIMEOUT = 60.0
"""Seconds that a call may take unless the program says otherwise."""


class Client:
    """A client of a server: it starts runs, answers questions and reads states. It has no graph and runs no nodes.

    ``server`` is host:port, or GRAPHD_SERVER without it. ``security`` and the environment say how it is called.
    ``timeout`` is how many seconds a call may take, repetitions included; None is no limit. Streams, ``runs.wait``
    and ``inbox.watch`` have a time of their own. Nothing is sent before the first call.

    Values are plain JSON: dicts, lists, strings, numbers. A call that is refused raises GraphdError or a class of it,
    one without an answer in its time CallTimeoutError. InvalidSecurityError and ValueError name wrong arguments.

    A client is safe to use from several threads. It does not survive a fork.
    """

    runs: Runs
    """Starts, follows, answers and ends runs."""
    threads: Threads
    """Threads, their states and their histories."""
    inbox: Inbox
    """The questions of all threads, and answers to them."""
    graphs: Graphs
    """The graphs that the server has."""

    def __init__(
        self, server: str | None = None, *, security: Security | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        self._use(Caller(find_server(server, security), timeout))

    def _use(self, caller: Caller) -> None:
        self._caller = caller
        self.runs, self.threads = Runs(caller), Threads(caller)
        self.inbox, self.graphs = Inbox(caller), Graphs(caller)

    def with_timeout(self, timeout: float | None) -> Client:
        """The same client, whose calls may take so many seconds."""
        other = copy.copy(self)
        other._use(self._caller.with_timeout(timeout))
        return other


class AsyncClient:
    """Like Client, for async programs: its calls are made on the running loop, whichever that is."""

    runs: AsyncRuns
    """Starts, follows, answers and ends runs."""
    threads: AsyncThreads
    """Threads, their states and their histories."""
    inbox: AsyncInbox
    """The questions of all threads, and answers to them."""
    graphs: AsyncGraphs
    """The graphs that the server has."""

    def __init__(
        self, server: str | None = None, *, security: Security | None = None, timeout: float | None = TIMEOUT
    ) -> None:
        self._use(AsyncCaller(find_server(server, security), timeout))

    def _use(self, caller: AsyncCaller) -> None:
        self._caller = caller
        self.runs, self.threads = AsyncRuns(caller), AsyncThreads(caller)
        self.inbox, self.graphs = AsyncInbox(caller), AsyncGraphs(caller)

    def with_timeout(self, timeout: float | None) -> AsyncClient:
        """The same client, whose calls may take so many seconds."""
        other = copy.copy(self)
        other._use(self._caller.with_timeout(timeout))
        return other
