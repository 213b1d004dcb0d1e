"""A compiled graph and the server that it is attached to."""

from __future__ import annotations

import contextlib
import copy
import signal
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from graphd._gen.v1 import graph_pb2
from graphd.client.connection import GraphConnection
from graphd.client.options import merge_configs
from graphd.compiled.hints import names_no_thread
from graphd.compiled.server_location import ServerLocation, complete_security, find_server, warn_foreign_saver
from graphd.compiled.sessions import Attachment, attach_program, close_attachment
from graphd.declare.builder import Builder
from graphd.declare.compiled_graph import CompiledGraph
from graphd.declare.options import CompileOptions
from graphd.declare.program import Program
from graphd.dev import shared_dev_server
from graphd.names import wire_thread
from graphd.security import Security, Target
from graphd.transport.server import Server, server_at
from graphd.values.worker_limits import WorkerLimits

Self = TypeVar("Self", bound="AttachedGraph")


class AttachedGraph(CompiledGraph):
    """A graph that knows where it lives."""

    def __init__(self, builder: Builder, options: CompileOptions) -> None:
        self.builder, self.compile_options = builder, options
        self.program = Program(builder, options)
        self.config: dict[str, Any] = {}
        self._attachments = _Attachments()
        weakref.finalize(self._attachments, self.program.give_up_name).atexit = False
        if options.server is not None and options.worker:
            self.attach()

    @property
    def name(self) -> str:
        """The name that the graph was given."""
        return self.program.public_name

    @property
    def is_function(self) -> bool:
        """It is an entrypoint."""
        return self.program.function is not None

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

    def connect(self) -> GraphConnection:
        """The server of the graph; makes this process work for it, unless the graph was compiled not to."""
        if self.compile_options.worker:
            return self.attach()
        target, _ = self._find_target(None, None)
        return GraphConnection(server_at(*target), {})

    def attach(self, server: str | None = None, security: Security | None = None) -> Attachment:
        """Connects as worker and client; done by the first call otherwise.

        ``server`` is for a graph that a node calls: it is needed wherever the
        node runs. ``security`` says how it is called.
        """
        target, lasting = self._find_target(server, security)
        while True:
            if (known := self._attachments.find(target)) is not None:
                return known
            begun = Future[Attachment]()
            try:
                if (first := self._attachments.begin(target, begun)) is not begun:
                    with contextlib.suppress(CancelledError):
                        return first.result()
                    continue
                made = attach_program(self.program, target, self._attachments, self._worker_limits(), lasting=lasting)
            except BaseException as error:
                self._attachments.end(target, begun, None)
                if not isinstance(error, Exception):
                    begun.cancel()  # its thread was interrupted: another one looks for the server
                else:
                    begun.set_exception(error)
                raise
            if self._attachments.end(target, begun, made):
                begun.set_result(made)
                return made
            begun.cancel()  # the graph was detached meanwhile, and may have changed
            close_attachment(made, 0.0)

    @property
    def is_attached(self) -> bool:
        """This process works for a server, as far as is known."""
        return bool(self._attachments.by_target)

    def _worker_limits(self) -> WorkerLimits:
        given = self.compile_options.worker
        return given if isinstance(given, WorkerLimits) else WorkerLimits()

    def _find_target(self, server: str | None, security: Security | None) -> tuple[Target, bool]:
        """The server to attach to, and whether the process is to work for it to its end."""
        own = self._location
        if server is None:
            if own.address is None and own.stored:
                warn_foreign_saver(self.checkpointer)
            return Target(own.address or shared_dev_server().address, own.security), own.lasting
        if security is None and server == own.address:
            return Target(server, own.security), own.lasting
        given = self.compile_options.security if security is None else security
        target = Target(server, complete_security(given))
        return target, own.lasting and target == (own.address, own.security)

    def detach(self, grace: float = 0.0) -> None:
        """Takes no more work; lets running nodes finish for so many seconds."""
        for attachment in self._attachments.take_all():
            close_attachment(attachment, grace)

    def serve(self) -> None:
        """Works for the server until the process is interrupted, or told to end.

        Then it takes nothing new, and what runs has 20 seconds to finish.
        GraphdError is raised when the server wants this worker no more, and RuntimeError
        when no server is named: others don't know the local one.
        """
        if not self.compile_options.worker:
            raise RuntimeError("the graph was compiled with worker=False: it does not work for a server")
        if self._location.is_local:
            raise RuntimeError("serve() works for a server: compile(server='host:port'), or set GRAPHD_SERVER")
        with _end_on_signal():
            self.attach().session.wait_closed()
        self.detach(grace=20)

    @property
    def _location(self) -> ServerLocation:
        return find_server(self.checkpointer, self.compile_options.server, self.compile_options.security)

    def _is_persistent(self) -> bool:
        if self.checkpointer is True:
            raise RuntimeError("checkpointer=True cannot be used for root graphs.")
        return self._location.stored

    def locate_thread(self, config: Mapping[str, Any]) -> tuple[Server, str]:
        """The server of the thread of a config, and the id that the thread has there.

        ValueError is raised for a config without a thread, and for a graph that keeps none.
        """
        thread = self._thread_of(merge_configs(self.config, config))
        if thread is None:
            raise ValueError(
                "the run keeps no thread: want a thread_id in config['configurable'], and a server or a saver"
            )
        return self.connect().server, thread

    def _thread_of(self, config: Mapping[str, Any]) -> str | None:
        """The thread of a call as the server knows it; None for a passing one."""
        thread = (config.get("configurable") or {}).get("thread_id")
        if not self._is_persistent():
            return None
        if thread is None:
            if self.checkpointer is None:
                return None
            raise names_no_thread(
                ValueError(
                    "Checkpointer requires one or more of the following 'configurable' keys: "
                    "thread_id, checkpoint_ns, checkpoint_id"
                )
            )
        return wire_thread(self._location.prefix, thread)


@contextlib.contextmanager
def _end_on_signal() -> Iterator[None]:
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


class _Attachments:
    """The attachments of a graph, shared by its copies."""

    def __init__(self) -> None:
        self.by_target: dict[Target, Attachment] = {}
        self.lock = threading.Lock()
        self._begun: dict[Target, Future[Attachment]] = {}

    def find(self, target: Target) -> Attachment | None:
        """The attachment to a server, None if one is to be made."""
        known = self.by_target.get(target)
        return None if known is None or known.session.has_left else known

    def begin(self, target: Target, begun: Future[Attachment]) -> Future[Attachment]:
        """What brings the attachment to a server: of the first caller who makes it, for whom the others wait."""
        with self.lock:
            if (known := self.find(target)) is None:
                return self._begun.setdefault(target, begun)
        made = Future[Attachment]()
        made.set_result(known)
        return made

    def end(self, target: Target, begun: Future[Attachment], made: Attachment | None) -> bool:
        """Takes what a caller has made, None if that has failed. False: it was the first one no more."""
        with self.lock:
            if self._begun.get(target) is not begun:
                return False
            del self._begun[target]
            if made is not None:
                self.by_target[target] = made
            return True

    def take_all(self) -> list[Attachment]:
        """Removes all attachments. Those that are about to be made are not taken."""
        with self.lock:
            attachments, self.by_target, self._begun = list(self.by_target.values()), {}, {}
        return attachments
