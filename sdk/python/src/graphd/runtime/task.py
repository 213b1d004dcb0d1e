"""The task that the current code belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphd.runtime.info import ContextT, Runtime
from graphd.runtime.replay import Place, Replay
from graphd.runtime.running_calls import RunningCalls
from graphd.security import Target

_FIRST_INSIDE = 1 << 30
"""The numbers of graphs that tasks of a node call begin here."""


class Host(Protocol):
    """What a running task needs from the worker that runs it."""

    @property
    def thread(self) -> str:
        """The thread of the run, as the server knows it."""

    @property
    def run(self) -> str:
        """The id of the run."""

    @property
    def task(self) -> str:
        """The id of the task, the same on every attempt."""

    @property
    def target(self) -> Target:
        """The server that runs the graph, and how it is called."""

    @property
    def store(self) -> Any:
        """The store of the graph that the worker serves, None without one."""

    def emit_event(self, channel: str, name: str, value: Any, durable: bool) -> None:
        """Sends an event to the watchers of the run."""

    def emit_task_event(self, value: Any, durable: bool) -> None:
        """Sends an event about a task that the node calls, also while the node repeats itself.

        ValueError is raised for a durable one that is too large.
        """

    def confirm_lease(self) -> None:
        """Raises GraphdError if the task is not this worker's any more."""

    async def aconfirm_lease(self) -> None:
        """Like confirm_lease, without blocking the loop."""

    def record_memo(self, place: Place, value: Any) -> Any:
        """Stores a memo and returns the value to use."""

    async def arecord_memo(self, place: Place, value: Any) -> Any:
        """Like record_memo, without blocking the loop."""

    def report_alive(self) -> None:
        """Puts off the idle timeout."""

    def call_graph(self, request: Any) -> Any:
        """Runs another graph inside of the task: answers a CallGraphRequest."""


class NodeEnvironment(Protocol):
    """The config and the runtime of a node, built on request."""

    def config(self) -> dict[str, Any]:
        """The config of the node."""

    def runtime(self, config: dict[str, Any]) -> Runtime[Any]:
        """The runtime of the node."""

    @property
    def cache(self) -> Any:
        """The cache of the graph, None without one."""

    def find_loop(self) -> asyncio.AbstractEventLoop:
        """Where coroutines run that plain code calls."""

    def stream_tokens(self, task: CurrentTask, manager: Any = None) -> contextlib.AbstractContextManager[None]:
        """A block whose models are called with the config of a task, and emit their tokens.

        They tell the manager of LangChain's callbacks, if there is one.
        """


@dataclass
class CurrentTask:
    """What functions like ``interrupt`` know of the node that calls them."""

    host: Host
    replay: Replay
    environment: NodeEnvironment
    depth: int = 0
    calls: int = 0
    waiting: list[str] = field(default_factory=list)
    pushed: list[tuple[str, Any]] = field(default_factory=list)  # written to the state before what the node returns
    root: CurrentTask | None = None  # of a task that a node calls: the task of the node
    running: RunningCalls = field(default_factory=RunningCalls)
    progressed: float = field(default_factory=time.monotonic)
    refused: list[BaseException] = field(default_factory=list)  # why the last answers to what it asks are refused

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The config that the node sees."""
        return self.environment.config()

    @functools.cached_property
    def runtime(self) -> Runtime[Any]:
        """The runtime that the node sees."""
        return self.environment.runtime(self.config)

    def note_progress(self) -> None:
        """Puts off the idle timeout of a task that a node calls; that of a node is the server's."""
        self.progressed = time.monotonic()

    def next_call(self) -> int:
        """Numbers the graphs that the task calls, each the same way on every attempt."""
        self.calls += 1
        if self.root is None:
            return self.calls - 1
        # Tasks run side by side, so numbers of one row would depend on which is faster.
        return _FIRST_INSIDE + zlib.crc32(f"{current_scope()}#{self.calls}".encode()) % _FIRST_INSIDE


_task: ContextVar[CurrentTask | None] = ContextVar("graphd_task", default=None)
_scope: ContextVar[str] = ContextVar("graphd_scope", default="")


def current_task() -> CurrentTask | None:
    """The task of the calling code, None outside of nodes."""
    return _task.get()


def required_task(what: str) -> CurrentTask:
    """The task of the calling code; RuntimeError outside of nodes."""
    task = _task.get()
    if task is None:
        raise RuntimeError(f"{what} works only inside of a node that graphd runs")
    return task


def get_runtime(context_schema: type[ContextT] | None = None) -> Runtime[ContextT]:
    """The runtime of the node that calls this."""
    return required_task("get_runtime()").runtime


def current_scope() -> str:
    """The part of the task that the calling code belongs to."""
    return _scope.get()


def enter_task(task: CurrentTask, scope: str = "") -> None:
    """Makes the task the current one for the rest of the calling context."""
    _task.set(task)
    _scope.set(scope)


@contextlib.contextmanager
def scope(name: str) -> Iterator[None]:
    """Gives the questions and memos of a block positions of their own.

    Parts of a node that run side by side, like tool calls, each need a scope,
    so that every one of them gets its own answers. Scopes nest.
    """
    if not name:
        raise ValueError("a scope needs a name")
    outer = _scope.get()
    token = _scope.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        _scope.reset(token)
