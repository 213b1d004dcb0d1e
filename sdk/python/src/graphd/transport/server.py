"""Connections to servers, one per address."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import grpc

from graphd._gen.v1.graph_service_pb2_grpc import GraphServiceStub
from graphd._gen.v1.interrupt_service_pb2_grpc import InterruptServiceStub
from graphd._gen.v1.registry_service_pb2_grpc import RegistryServiceStub
from graphd._gen.v1.thread_service_pb2_grpc import ThreadServiceStub
from graphd.errors import GraphdError
from graphd.transport.backoff import UNOPENED, Backoff, is_transient
from graphd.transport.errors import to_graphd_error

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.initial_reconnect_backoff_ms", 100),
]
_lock = threading.Lock()
_servers: dict[str, Server] = {}


class Stubs:
    """The services of one channel."""

    def __init__(self, channel: Any) -> None:
        self.graphs = GraphServiceStub(channel)
        self.threads = ThreadServiceStub(channel)
        self.interrupts = InterruptServiceStub(channel)
        self.registry = RegistryServiceStub(channel)


class Server:
    """One address: a channel for plain calls, one per loop for async calls."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.channel = grpc.insecure_channel(address, options=_OPTIONS)
        self.stubs = Stubs(self.channel)
        self._async: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Stubs] = weakref.WeakKeyDictionary()

    def open_channel(self) -> grpc.Channel:
        """A connection of its own, which may be given up without harm to others."""
        own = [("grpc.use_local_subchannel_pool", 1), ("grpc.min_reconnect_backoff_ms", 5000)]
        return grpc.insecure_channel(self.address, options=[*_OPTIONS, *own])

    @property
    def astubs(self) -> Stubs:
        """The services for the running loop."""
        loop = asyncio.get_running_loop()
        known = self._async.get(loop)
        if known is None:
            known = self._async[loop] = Stubs(grpc.aio.insecure_channel(self.address, options=_OPTIONS))
        return known


def server_at(address: str) -> Server:
    """The connection to an address, made when it is first needed."""
    with _lock:
        if address not in _servers:
            _servers[address] = Server(address)
        return _servers[address]


def call_unary(method: Callable[..., Any], request: Any) -> Any:
    """Makes a call; its errors are GraphdErrors."""
    try:
        return method(request)
    except grpc.RpcError as error:
        raise to_graphd_error(error) from None


def retry_read(method: Callable[..., Any], request: Any, *, opened: bool = True) -> Any:
    """Like call_unary, for calls that change nothing: they are repeated while the
    server is away, for a short time if it may never have been there (opened)."""
    backoff = Backoff()
    while True:
        try:
            return call_unary(method, request)
        except GraphdError as problem:
            if not is_transient(problem):
                raise
            time.sleep(
                backoff.next_pause(problem) if opened or problem.reason else backoff.next_pause(problem, UNOPENED)
            )


def retry_write(method: Callable[..., Any], request: Any) -> Any:
    """Like call_unary, for calls with a request id: they are repeated with the same
    one, which does them once, while the server or its store is away, and when
    the outcome is unknown."""
    assert request.request_id, "a call without a request id can't be repeated"
    backoff = Backoff()
    while True:
        try:
            return call_unary(method, request)
        except GraphdError as problem:
            if not is_transient(problem):
                raise
            # Without a reason no server has answered: it may not be there at all.
            time.sleep(backoff.next_pause(problem) if problem.reason else backoff.next_pause(problem, UNOPENED))


async def acall_unary(method: Callable[..., Any], request: Any) -> Any:
    """Like call_unary, for async stubs."""
    try:
        return await method(request)
    except grpc.RpcError as error:
        raise to_graphd_error(error) from None
