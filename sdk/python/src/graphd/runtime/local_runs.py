"""What this process knows of the runs that it started itself.

A run may be worked on anywhere. Where its client and its worker are the same
process, nodes see the very config, context and event loop of the caller, and
the caller sees the very exception of the node.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphd._gen.v1 import payload_pb2
from graphd.runtime import exception_text
from graphd.runtime.info import RunControl
from graphd.runtime.reader_gate import ReaderGate
from graphd.runtime.traced_graph import TracedGraph
from graphd.security import Target


@dataclass(eq=False)
class LocalRun:
    """A call of this process that is under way. Two calls are never the same, however alike they are."""

    config: dict[str, Any]
    context: Any = None
    control: RunControl | None = None
    tokens: bool = True  # the caller wants to see what models say as they say it
    loop: asyncio.AbstractEventLoop | None = None
    variables: contextvars.Context = field(default_factory=contextvars.copy_context)
    errors: dict[str, BaseException] = field(default_factory=dict)
    refused: list[BaseException] = field(default_factory=list)  # answers that the class of a question does not take
    cancelled: bool = False
    run_id: str | None = None  # of the run that the call begins; None: unknown, as that of an answer is
    is_joined: bool = False  # the call waits for a run that another call has begun
    gate: ReaderGate | None = None  # None: tasks begin when they are there
    program: Any = None  # the graph that was called
    store: Any = None  # of the graph that was called: the graphs inside of it see it too
    traced: dict[tuple[str, ...], TracedGraph] = field(default_factory=dict)  # by the namespace of the graph

    def find_traced(self, levels: Sequence[str]) -> TracedGraph | None:
        """The innermost graph around a namespace whose runs are traced."""
        if not self.traced:
            return None
        found = (self.traced.get(tuple(levels[:end])) for end in range(len(levels), -1, -1))
        return next((graph for graph in found if graph is not None), None)

    def find_error(self, failure: payload_pb2.Failure) -> BaseException | None:
        """The exception that a failure came of, None if it was not raised here."""
        return next(
            (e for e in reversed(list(self.errors.values())) if exception_text.matches_failure(failure, e)), None
        )


# Runs whose readers have left are stopped. A task of theirs may be on its way here all the same.
_MOST_LEFT = 1000

_lock = threading.Lock()
_left: dict[tuple[Target, str], None] = {}  # in order
_runs: dict[tuple[Target, str], list[LocalRun]] = {}
_stores: dict[tuple[Target, str], list[Any]] = {}


@contextlib.contextmanager
def register_call(server: Target, thread: str, run: LocalRun) -> Iterator[LocalRun]:
    """Makes a call known while it lasts."""
    key = (server, thread)
    with _lock:
        _runs.setdefault(key, []).append(run)
    try:
        yield run
    finally:
        with _lock:
            _runs[key].remove(run)
            if not _runs[key]:
                del _runs[key]


@contextlib.contextmanager
def share_store(server: Target, thread: str, store: Any) -> Iterator[None]:
    """Shows the graphs that a node of the thread calls in a block the store of the node."""
    key = (server, thread)
    with _lock:
        _stores.setdefault(key, []).append(store)
    try:
        yield
    finally:
        with _lock:
            _stores[key].remove(store)
            if not _stores[key]:
                del _stores[key]


def find_store(server: Target, thread: str) -> Any:
    """The store of the outermost graph of a thread, None if it is not known in this process."""
    with _lock:
        calls, shared = _runs.get((server, thread), ()), _stores.get((server, thread), ())
        began = (call.store for call in calls if not call.is_joined)
        return next((s for s in (*began, *shared) if s is not None), None)


def find_call(server: Target, thread: str, run: str) -> LocalRun | None:
    """The call of this process that began a run, None if there is none.

    A call that has joined the run is none: the run keeps the config of its own caller, and goes on without the other.
    """
    with _lock:
        calls = [call for call in reversed(_runs.get((server, thread), ())) if not call.is_joined]
    known = next((call for call in calls if call.run_id == run), None)
    return known or next((call for call in calls if call.run_id is None), None)


def note_error(server: Target, thread: str, task: str, error: BaseException) -> None:
    """Lets the calls of this process on a thread raise the very exception of a task."""
    with _lock:
        for call in _runs.get((server, thread), ()):
            call.errors[task] = error


def mark_left(server: Target, run: str) -> None:
    """The reader of a run has left, and the run is stopped: none of its tasks is to begin."""
    with _lock:
        _left[server, run] = None
        while len(_left) > _MOST_LEFT:
            del _left[next(iter(_left))]


def is_left(server: Target, run: str) -> bool:
    """Whether no task of a run is to begin any more."""
    return bool(_left) and (server, run) in _left
