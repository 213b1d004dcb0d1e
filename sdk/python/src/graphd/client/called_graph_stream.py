"""What happens in a graph that a node has called, while it happens.

The call itself answers once, at the end. Its events are in the log of the
thread like all others, so they are read there.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import grpc

from graphd._gen.v1 import event_pb2, graph_pb2, payload_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.client.connection import GraphConnection
from graphd.client.items import Item, filter_of
from graphd.client.omitted_values import restore_values
from graphd.client.options import CallOptions
from graphd.client.resumable_stream import continues_elsewhere
from graphd.client.states import values_at
from graphd.client.translator import Translator
from graphd.constants import TASK_SEPARATOR
from graphd.declare.program import Program
from graphd.names import parse_namespace, public_levels, wire_levels
from graphd.runtime.task import CurrentTask
from graphd.transport.errors import to_graphd_error

_PAUSE = 0.1  # seconds between two attempts to read on


class CalledGraphStream:
    """One call of a graph, and its events."""

    def __init__(
        self,
        connection: GraphConnection,
        program: Program,
        task: CurrentTask,
        request: ws.CallGraphRequest,
        config: Mapping[str, Any],
        options: CallOptions,
    ) -> None:
        self._connection, self._program, self._task, self._request = connection, program, task, request
        self._stubs = connection.server.stubs
        self._base = called_namespace(task, request)
        self._translator = Translator(
            options.stream_format.modes,
            program,
            config,
            options.output_keys,
            self._read_state,
            subgraphs=options.subgraphs,
            called=True,
        )
        self._filter = filter_of(options.stream_format.modes, subgraphs=True, some_keys=options.output_keys is not None)
        self._filter.namespaces.add(path=self._base)
        self._deepest = None if options.subgraphs else len(self._base)
        self._cursor = payload_pb2.Cursor()
        self._live: Any = None
        self._ended = threading.Event()
        self._response: ws.CallGraphResponse | None = None
        self._error: BaseException | None = None

    def result(self) -> ws.CallGraphResponse:
        """What came of the call; raises what it raised."""
        if self._error is not None:
            raise self._error
        assert self._response is not None
        return self._response

    def stream_items(self) -> Iterator[Item]:
        """Makes the call; ends when all is told."""
        self._open_watch(gs.WatchRequest(now={}, follow=True))
        self._record_cursor(self._read_opened())  # nothing is missed from here on
        call = threading.Thread(target=contextvars.copy_context().run, args=(self._call_graph,), daemon=True)
        call.start()
        try:
            while not self._ended.is_set():
                yield from self._read_items()
                if not self._ended.wait(_PAUSE):
                    self._open_watch(gs.WatchRequest(after=self._cursor, follow=True))
            call.join()
            complete = self._error is not None
            while not complete:
                self._open_watch(gs.WatchRequest(after=self._cursor))
                complete = yield from self._read_items()
                if not complete:
                    time.sleep(_PAUSE)
            for item in self._translator.open_question_items(()):
                yield self._place_item(item)
        finally:
            self._live.cancel()

    def _open_watch(self, request: gs.WatchRequest) -> None:
        request.thread_id = self._task.host.thread
        request.filter.CopyFrom(self._filter)
        self._live = self._stubs.graphs.Watch(request)

    def _read_opened(self) -> event_pb2.Event:
        try:
            opened: event_pb2.Event = next(self._live)
        except grpc.RpcError as error:
            raise to_graphd_error(error) from None
        return opened

    def _call_graph(self) -> None:
        try:
            self._response = self._task.host.call_graph(self._request)
        except BaseException as error:
            self._error = error
        self._ended.set()
        self._live.cancel()

    def _read_items(self) -> Generator[Item, None, bool]:
        """Yields what comes; False when the stream breaks in a way that reading
        on can mend, True at its end."""
        try:
            for event in self._live:
                self._record_cursor(event)
                if continues_elsewhere(event):
                    return False
                yield from self._translate_event(event)
            return True
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE):
                raise to_graphd_error(error) from None
            return False

    def _record_cursor(self, event: event_pb2.Event) -> None:
        if event.HasField("cursor"):
            self._cursor.CopyFrom(event.cursor)
        elif event.HasField("heartbeat"):
            self._cursor.CopyFrom(event.heartbeat.scanned)

    def _translate_event(self, event: event_pb2.Event) -> Iterator[Item]:
        if event.HasField("end") or event.HasField("opened"):
            return
        if self._deepest is not None and len(event.namespace) > self._deepest:
            return
        del event.namespace[: len(self._base)]
        if event.value_omitted:
            restore_values(self._stubs, self._program.find_graph(public_levels(event.namespace)), event)
        for item in self._translator.translate_event(event):
            yield self._place_item(item)

    def _place_item(self, item: Item) -> Item:
        """An item of the called graph, where it happens in the thread."""
        return Item(item.mode, (*self._base, *item.levels), item.data, item.interrupts)

    def _read_state(self, below: Sequence[str]) -> Any:
        return values_at(self._connection, self._program, self._task.host.thread, [*self._base, *wire_levels(below)])


def called_namespace(task: CurrentTask, request: ws.CallGraphRequest) -> list[str]:
    """Where the called graph lives."""
    base = parse_namespace((task.root or task).config["configurable"]["checkpoint_ns"])
    if request.persistence == graph_pb2.SUBGRAPH_PERSISTENCE_PERSIST:
        base = [level.partition(TASK_SEPARATOR)[0] for level in base]
    return [*base, str(request.call_index)] if request.call_index else base
