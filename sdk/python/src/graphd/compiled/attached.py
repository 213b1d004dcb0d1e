"""A compiled graph and the server that it is attached to."""

from __future__ import annotations

import contextlib
import copy
import signal
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from graphd._gen.v1 import graph_pb2
from graphd.client.options import merge_configs
from graphd.compiled.sessions import Attachment, attach, leave
from graphd.compiled.where import Where, where
from graphd.declare.builder import Builder
from graphd.declare.compiled import Compiled
from graphd.declare.options import CompileOptions
from graphd.declare.program import Program
from graphd.dev import shared_dev_server
from graphd.names import wire_thread

Self = TypeVar("Self", bound="Attached")


class Attached(Compiled):
    """A graph that knows where it lives."""

    def __init__(self, builder: Builder, options: CompileOptions) -> None:
        self.builder, self.compile_options = builder, options
        self.program = Program(builder, options)
        self.config: dict[str, Any] = {}
        self._place = _Place()
        weakref.finalize(self._place, self.program.give_up_name).atexit = False
        if options.server is not None:
            self.attach()

    @property
    def name(self) -> str:
        """The name that the graph was given."""
        return self.program.public_name

    @property
    def checkpointer(self) -> Any:
        """The saver the graph was compiled with."""
        return self.compile_options.checkpointer

    @property
    def persistence(self) -> int:
        """How the graph keeps its state when it is part of another one."""
        if self.checkpointer is True:
            return graph_pb2.SUBGRAPH_PERSISTENCE_PERSIST
        if self.checkpointer is False:
            return graph_pb2.SUBGRAPH_PERSISTENCE_DISABLED
        return graph_pb2.SUBGRAPH_PERSISTENCE_INHERIT

    @property
    def step_timeout(self) -> float | None:
        """Seconds that one superstep may take."""
        return self.program.step_timeout

    @step_timeout.setter
    def step_timeout(self, seconds: float | None) -> None:
        self.program.step_timeout = seconds
        self.detach()

    @property
    def store(self) -> Any:
        """The store the graph was compiled with."""
        return self.compile_options.store

    @property
    def cache(self) -> Any:
        """The cache of node results the graph was compiled with."""
        return self.compile_options.cache

    def with_config(self: Self, config: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """The same graph, on the same worker, with defaults for the config of its calls."""
        bound = copy.copy(self)
        bound.config = merge_configs(merge_configs(self.config, config), more)
        return bound

    def copy(self: Self, update: Mapping[str, Any] | None = None) -> Self:
        """The same graph, with other attributes."""
        twin = copy.copy(self)
        for name, value in (update or {}).items():
            setattr(twin, name, value)
        return twin

    def attach(self, server: str | None = None) -> Attachment:
        """Connects as worker and client; done by the first call otherwise.

        ``server`` is for a graph that a node calls: it is needed wherever the
        node runs.
        """
        own = self._where
        address = server or own.address or shared_dev_server().address
        with self._place.lock:
            if address not in self._place.homes:
                lasting = own.lasting and address == own.address
                self._place.homes[address] = attach(self.program, address, self._place, lasting=lasting)
            return self._place.homes[address]

    def detach(self, grace: float = 0.0) -> None:
        """Takes no more work; lets running nodes finish for so many seconds."""
        with self._place.lock:
            homes, self._place.homes = self._place.homes, {}
        for home in homes.values():
            leave(home, grace)

    def serve(self) -> None:
        """Works for the server until the process is interrupted, or told to end.

        Then it takes nothing new, and what runs has 20 seconds to finish.
        GraphdError is raised when the server wants this worker no more.
        """
        with _ended_by_signal():
            self.attach().session.wait()
        self.detach(grace=20)

    @property
    def _where(self) -> Where:
        return where(self.checkpointer, self.compile_options.server)

    def _persistent(self) -> bool:
        if self.checkpointer is True:
            raise RuntimeError("checkpointer=True cannot be used for root graphs.")
        return self._where.stored

    def _thread(self, config: Mapping[str, Any]) -> str | None:
        """The thread of a call as the server knows it; None for a passing one."""
        thread = (config.get("configurable") or {}).get("thread_id")
        if not self._persistent():
            return None
        if thread is None:
            if self.checkpointer is None:
                return None
            raise ValueError(
                "Checkpointer requires one or more of the following 'configurable' keys: "
                "thread_id, checkpoint_ns, checkpoint_id"
            )
        return wire_thread(self._where.prefix, thread)


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[None]:
    """A block that SIGTERM leaves as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may listen to signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Place:
    """The attachment of a graph, shared by its copies."""

    def __init__(self) -> None:
        self.homes: dict[str, Attachment] = {}
        self.lock = threading.Lock()
