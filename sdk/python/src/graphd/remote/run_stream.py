"""What happens in a run, as it happens, over broken connections and restarts of servers."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import event_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.connection import GraphConnection
from graphd.client.omitted_values import restore_values
from graphd.client.resumable_stream import aread_events, read_events
from graphd.client.state_reads import read_permitted
from graphd.client.states import values_at
from graphd.client.stream_format import StreamFormat
from graphd.client.translator import Translator
from graphd.client.unassigned_tasks import UnassignedTasks
from graphd.declare.graph_shape import UndeclaredGraph
from graphd.errors import NotFoundError
from graphd.names import public_thread, wire_levels
from graphd.remote.cursor import Cursor, read_cursor
from graphd.remote.run import Run, read_run
from graphd.threads import run_blocking
from graphd.transport.attempts import Deadline
from graphd.values.command import Interrupt


@dataclass(frozen=True)
class StreamItem:
    """One thing that happened. ``data`` has the form of LangGraph's stream of that mode, in plain JSON."""

    mode: str
    """values, updates, messages, custom, tasks, checkpoints or debug."""
    data: Any
    namespace: tuple[str, ...]
    """Where it happened: levels "node:task" from the outside in; empty for the graph itself."""
    questions: tuple[Interrupt, ...]
    """Of a state: the questions that are open."""
    cursor: Cursor | None
    """Where to go on after it. Of several items of one event only the last is passed: the others come again."""


class FollowedRun:
    """What is known of a run that is followed."""

    def __init__(
        self,
        connection: GraphConnection,
        request: Any,
        modes: str | Sequence[str],
        deadline: Deadline,
        *,
        subgraphs: bool,
    ) -> None:
        self._connection, self._request, self._deadline = connection, request, deadline
        self._thread = _thread_of(request)
        self._translator = Translator(
            StreamFormat(modes, subgraphs=subgraphs, version="v1").modes,
            UndeclaredGraph(""),
            {"configurable": {"thread_id": self.thread_id}},
            None,
            self._read_state,
            subgraphs=subgraphs,
        )
        self._unassigned = UnassignedTasks(connection)
        self._run: Run | None = None
        self._cursor = self._shown = self._passed = _start_of(request)
        self._pending: deque[StreamItem] = deque()

    @property
    def thread_id(self) -> str:
        """The thread of the run."""
        return public_thread(self._thread)

    @property
    def run_id(self) -> str:
        """The run; "" before the stream is open: ``with`` opens it, and so does the first item."""
        return self._run.run_id if self._run is not None else ""

    @property
    def run(self) -> Run | None:
        """The run as it was when the stream was opened, and at the end of the stream as it is then."""
        return self._run

    @property
    def cursor(self) -> Cursor | None:
        """Where to go on after the items that were yielded, with ``runs.watch(after=…)`` in any process."""
        return self._shown if self._pending else self._cursor

    def _take_item(self) -> StreamItem:
        item = self._pending.popleft()
        self._shown = item.cursor
        return item

    def _read_state(self, below: Sequence[str]) -> Any:
        return read_permitted(self._thread, lambda: values_at(self._connection, None, self._thread, wire_levels(below)))

    def _restore_values(self, event: event_pb2.Event) -> None:
        restore_values(self._connection.server.stubs, None, event)

    def _record_event(self, event: event_pb2.Event) -> None:
        """Makes items of an event, and notes how far the stream has come; raises why the run has failed."""
        try:
            self._pending.extend(self._translate_event(event))
        except BaseException:
            self._unassigned.close()
            raise

    def _translate_event(self, event: event_pb2.Event) -> Iterator[StreamItem]:
        self._unassigned.observe_event(event)
        self._cursor = read_cursor(event.cursor) or self._cursor
        if event.HasField("opened"):
            self._run = read_run(event.opened.run)
        made = list(self._translator.translate_event(event))
        for number, item in enumerate(made, 1):
            cursor = self._cursor if number == len(made) else self._passed
            yield StreamItem(item.mode, item.data, item.levels, item.interrupts, cursor)
        self._passed = self._cursor if made else self._passed
        if event.HasField("end"):
            self._unassigned.close()
            self._cursor = read_cursor(event.end.resume_at) or self._cursor
            if not event.end.HasField("run"):
                text = f"thread {self.thread_id!r} was deleted while its run was followed"
                raise NotFoundError(text, reason="THREAD_NOT_FOUND", code="NOT_FOUND")
            self._run = read_run(event.end.run)
            self._run.raise_error()


def _thread_of(request: Any) -> str:
    if isinstance(request, gs.StreamRequest):
        return request.run.thread_id
    return str(request.resume.thread_id if isinstance(request, gs.ResumeRequest) else request.thread_id)


def _start_of(request: Any) -> Cursor | None:
    """Where a request begins; None at the beginning of the run."""
    return read_cursor(request.after) if isinstance(request, gs.WatchRequest) else None


class RunStream(FollowedRun):
    """Yields the items of a run, until it ends or waits for people.

    At the end it raises why the run has failed, if it has. A connection that breaks is made anew, for half a
    minute without a server. The run goes on when the stream is closed early::

        with client.runs.stream("orders", {"order": 7}, thread_id="t1") as stream:
            for item in stream:
                print(item.mode, item.data)
        print(stream.run.state)
    """

    _events: Generator[event_pb2.Event, None, None] | None = None

    def __iter__(self) -> RunStream:
        return self

    def __next__(self) -> StreamItem:
        self._open()
        while not self._pending:
            self._read_event()
        return self._take_item()

    def __enter__(self) -> RunStream:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Follows the run no longer. The run goes on."""
        if self._events is not None:
            self._events.close()
        self._unassigned.close()

    def _open(self) -> None:
        if self._events is None:
            self._events = read_events(self._connection.server, self._request, self._deadline)
            self._read_event()

    def _read_event(self) -> None:
        assert self._events is not None
        event = next(self._events)
        if event.value_omitted:
            self._restore_values(event)
        self._record_event(event)


class AsyncRunStream(FollowedRun):
    """Like RunStream, on the running loop: ``async with`` and ``async for``."""

    _events: AsyncGenerator[event_pb2.Event, None] | None = None

    def __aiter__(self) -> AsyncRunStream:
        return self

    async def __anext__(self) -> StreamItem:
        await self._open()
        while not self._pending:
            await self._read_event()
        return self._take_item()

    async def __aenter__(self) -> AsyncRunStream:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Follows the run no longer. The run goes on."""
        if self._events is not None:
            await self._events.aclose()
        self._unassigned.close()

    async def _open(self) -> None:
        if self._events is None:
            self._events = aread_events(self._connection.server, self._request, self._deadline)
            await self._read_event()

    async def _read_event(self) -> None:
        assert self._events is not None
        event = await anext(self._events)
        if event.value_omitted:
            await run_blocking(self._restore_values, event)
        if event.HasField("interrupt"):  # may need the state, which is another call
            await run_blocking(self._record_event, event)
        else:
            self._record_event(event)
