"""Connections to servers, one per target."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import grpc

from graphd._gen.v1.graph_service_pb2_grpc import GraphServiceStub
from graphd._gen.v1.interrupt_service_pb2_grpc import InterruptServiceStub
from graphd._gen.v1.item_service_pb2_grpc import ItemServiceStub
from graphd._gen.v1.registry_service_pb2_grpc import RegistryServiceStub
from graphd._gen.v1.thread_service_pb2_grpc import ThreadServiceStub
from graphd.errors import GraphdError
from graphd.security import PLAIN, Security, Target
from graphd.transport.attempts import Attempts
from graphd.transport.dialer import Dialer
from graphd.transport.errors import to_graphd_error

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.initial_reconnect_backoff_ms", 100),
]
_KEEPALIVE = (20_000, 10_000)
"""Milliseconds between the pings of a connection in use, and for the answer to one. Servers permit a ping in 10 s."""


def _channel_options() -> list[tuple[str, int]]:
    """The options of a channel. Pings show that a silent connection is gone; its streams go on at another."""
    interval, patience = _KEEPALIVE
    return [
        *_OPTIONS,
        ("grpc.keepalive_time_ms", interval),
        ("grpc.keepalive_timeout_ms", patience),
        ("grpc.http2.ping_timeout_ms", patience),  # a minute otherwise, whatever the other timeout says
        ("grpc.http2.max_pings_without_data", 0),
    ]


class Stubs:
    """The services of one channel."""

    def __init__(self, channel: Any) -> None:
        self.graphs = GraphServiceStub(channel)
        self.threads = ThreadServiceStub(channel)
        self.interrupts = InterruptServiceStub(channel)
        self.registry = RegistryServiceStub(channel)
        self.items = ItemServiceStub(channel)


class Server:
    """One target: a channel for plain calls, one per loop for async calls. They
    are made anew when there are other certificates; calls under way end on the
    channel that they began on."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.missing_rights: set[str] = set()
        """Rights that the server has refused: calls that can do without them don't ask again."""
        self._dialer = Dialer(target)
        self._lock = threading.Lock()
        self._open_stubs()

    def _open_stubs(self) -> None:
        self._revision = self._dialer.revision
        self._stubs = Stubs(self._dialer.open_channel(_channel_options()))
        self._async: dict[asyncio.AbstractEventLoop, Stubs] = {}

    def _renew_stubs(self) -> None:
        if self._dialer.revision != self._revision:
            with self._lock:
                if self._dialer.revision != self._revision:
                    self._open_stubs()

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.target.address

    @property
    def revision(self) -> int:
        """Grows when there are new certificates, which only new channels use."""
        return self._dialer.revision

    @property
    def stubs(self) -> Stubs:
        """The services for plain calls."""
        self._renew_stubs()
        return self._stubs

    def open_channel(self) -> grpc.Channel:
        """A connection of its own, which may be given up without harm to others."""
        own = [("grpc.use_local_subchannel_pool", 1), ("grpc.min_reconnect_backoff_ms", 5000)]
        return self._dialer.open_channel([*_channel_options(), *own])

    @property
    def astubs(self) -> Stubs:
        """The services for the running loop."""
        self._renew_stubs()
        loop, stubs = asyncio.get_running_loop(), self._async
        known = stubs.get(loop)
        if known is None:
            known = Stubs(self._dialer.open_async_channel(_channel_options()))
            with self._lock:
                # A channel holds its loop, so neither would be collected: each asyncio.run would leave both.
                for ended in [one for one in stubs if one.is_closed()]:
                    del stubs[ended]
                stubs[loop] = known
        return known


class _KnownServers:
    """Servers by their targets: those in use, and the latest besides. A program
    may act for each of its users with a token of its own. Safe to use from
    several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._latest: OrderedDict[Target, Server] = OrderedDict()
        self._in_use: weakref.WeakValueDictionary[Target, Server] = weakref.WeakValueDictionary()

    def find_or_open(self, target: Target) -> Server:
        with self._lock:
            known = self._in_use.get(target)
        opened = known or Server(target)  # reads files
        with self._lock:
            server = self._in_use.setdefault(target, opened)
            self._latest[target] = server
            self._latest.move_to_end(target)
            if len(self._latest) > self._most:
                self._latest.popitem(last=False)
            return server


_servers = _KnownServers(64)


def server_at(address: str, security: Security = PLAIN) -> Server:
    """The connection to a server, made when it is first needed. InvalidSecurityError
    is raised when it must not be called like this."""
    return _servers.find_or_open(Target(address, security))


def call_unary(method: Callable[..., Any], request: Any) -> Any:
    """Makes a call; its errors are GraphdErrors."""
    try:
        return method(request)
    except grpc.RpcError as error:
        raise to_graphd_error(error) from None


def retry_read(method: Callable[..., Any], request: Any, *, opened: bool = True) -> Any:
    """Like call_unary, for calls that change nothing: they are repeated while the
    server is away, for a short time if it may never have been there (opened)."""
    return _repeat_call(method, request, Attempts(opened=opened))


def retry_write(method: Callable[..., Any], request: Any) -> Any:
    """Like call_unary, for calls with a request id: they are repeated with the same
    one, which does them once, while the server or its store is away, and when
    the outcome is unknown."""
    assert request.request_id, "a call without a request id can't be repeated"
    return _repeat_call(method, request, Attempts(opened=False))


def _repeat_call(method: Callable[..., Any], request: Any, attempts: Attempts) -> Any:
    while True:
        try:
            return call_unary(method, request)
        except GraphdError as problem:
            time.sleep(attempts.next_pause(problem))


async def acall_unary(method: Callable[..., Any], request: Any) -> Any:
    """Like call_unary, for async stubs."""
    try:
        return await method(request)
    except grpc.RpcError as error:
        raise to_graphd_error(error) from None
