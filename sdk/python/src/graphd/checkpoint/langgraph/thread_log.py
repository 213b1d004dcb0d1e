"""The log of a thread: each record is a checkpoint of graphd, or several when it is large.

Nothing in a log is changed. What is not needed any more is cut off at its
beginning; a log is rewritten by repeating at its end what shall stay.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.checkpoint.langgraph.records import Record, decode_records, encode_record
from graphd.checkpoint.langgraph.threads import CHANNEL, PUT, PUT_WRITES, Place, create_thread, delete_place
from graphd.errors import GraphdError
from graphd.transport.server import call_unary, retry_read, retry_write

_PAGE_SIZES = (4, 32, 256)
_LARGEST_CHANGE = 4 << 20  # bytes of one call, below the 8 MiB that a server takes by default
_LONGEST_CHANGE = 1000  # steps of one call
_LONGEST_COPY = 1000  # checkpoints that CopyThread copies
_ATTEMPTS = 10


class LogEntry(NamedTuple):
    """A record, and how many checkpoints of graphd back from the newest its beginning is."""

    record: Record
    depth: int


class ThreadLog:
    """The log of a place on a server."""

    def __init__(self, stubs: Any, place: Place) -> None:
        self._stubs = stubs
        self._place = place

    def append(self, record: Record) -> None:
        """Adds a record, and makes the thread when there is none. A large one takes several changes; it counts when
        the last is made."""
        for steps in _split_changes(_encode_steps([record])):
            try:
                self._write(steps)
            except GraphdError as problem:
                if problem.reason != "THREAD_NOT_FOUND":
                    raise
                self._create()
                self._write(steps)

    def _create(self) -> None:
        try:
            create_thread(self._stubs, self._place)
        except GraphdError as problem:
            if problem.reason != "THREAD_EXISTS":  # another program was faster
                raise

    def read(self) -> Iterator[LogEntry]:
        """The records, newest first; none when there is no thread."""
        left = None
        for record, depth in decode_records(self._read_values(), self._place.wire_id):
            if record.reach is not None:
                left = record.reach if left is None else min(left, record.reach)
            yield LogEntry(record, depth)
            if left is not None:
                left -= 1
                if left == 0:
                    return

    def _read_values(self) -> Iterator[Any]:
        request = ts.ListCheckpointsRequest(thread_id=self._place.wire_id, include_values=True)
        sizes = iter(_PAGE_SIZES)
        while True:
            request.page_size = next(sizes, _PAGE_SIZES[-1])
            page = _unless_missing(self._stubs.threads.ListCheckpoints, request)
            if page is None:
                return
            for state in page.checkpoints:
                yield json.loads(state.values.json).get(CHANNEL)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def cut(self, measure: Callable[[Iterator[LogEntry]], int | None]) -> None:
        """Cuts off the beginning. ``measure`` reads the log and gives the depth that stays, None for all of it."""
        for attempt in range(_ATTEMPTS):
            etag = self._read_etag()
            if etag is None or (depth := measure(self.read())) is None:
                return
            request = ts.PruneThreadRequest(thread_id=self._place.wire_id, keep_checkpoints=depth, etag=etag)
            try:
                call_unary(self._stubs.threads.PruneThread, request)
                return
            except GraphdError as problem:
                _raise_unless_changed(problem, attempt)

    def rewrite(self, choose: Callable[[Iterator[LogEntry]], Sequence[Record] | None]) -> None:
        """Replaces the log. ``choose`` reads it and gives the records that stay, oldest
        first, or None when all do. A log without records is deleted."""
        for attempt in range(_ATTEMPTS):
            newest = self._read_newest()
            if newest is None or (kept := choose(self.read())) is None:
                return
            if not kept:
                delete_place(self._stubs, self._place)
                return
            try:
                self._repeat(kept, newest.checkpoint.checkpoint_id)
                break
            except GraphdError as problem:
                _raise_unless_changed(problem, attempt)
        self.cut(_measure_all)

    def _repeat(self, records: Sequence[Record], newest: str) -> None:
        """Adds records. Only the last makes those before them void, so a program that dies meanwhile loses none."""
        last = replace(records[-1], reach=len(records))
        for steps in _split_changes(_encode_steps([*records[:-1], last])):
            newest = self._write(steps, expected=newest)

    def copy_to(self, target: Place) -> None:
        """Copies the log to a place that must not have one. It is copied in the server where the server can do it."""
        newest = self._read_newest()
        if newest is not None and newest.step < _LONGEST_COPY and self._copy_in_server(target):
            return
        create_thread(self._stubs, target)
        records = [replace(entry.record, reach=None) for entry in self.read()]
        for steps in _split_changes(_encode_steps(reversed(records))):
            ThreadLog(self._stubs, target)._write(steps)

    def _copy_in_server(self, target: Place) -> bool:
        request = ts.CopyThreadRequest(
            source_thread_id=self._place.wire_id,
            thread_id=target.wire_id,
            metadata=target.labels,
            request_id=uuid.uuid4().hex,
        )
        try:
            retry_write(self._stubs.threads.CopyThread, request)
        except GraphdError as problem:
            if problem.reason != "CHANGE_TOO_LARGE":
                raise
            return False
        return True

    def _read_etag(self) -> str | None:
        request = ts.GetThreadRequest(thread_id=self._place.wire_id)
        thread = _unless_missing(self._stubs.threads.GetThread, request)
        return None if thread is None else str(thread.etag)

    def _read_newest(self) -> Any:
        """The newest checkpoint of graphd without its record, None when there is no thread."""
        request = ts.ListCheckpointsRequest(thread_id=self._place.wire_id, page_size=1)
        page = _unless_missing(self._stubs.threads.ListCheckpoints, request)
        return None if page is None or not page.checkpoints else page.checkpoints[0]

    def _write(self, steps: Sequence[ts.StateSuperstep], *, expected: str = "") -> str:
        """Adds steps in one change, and returns the newest checkpoint of graphd."""
        request = ts.BulkUpdateStateRequest(
            thread_id=self._place.wire_id,
            supersteps=steps,
            expected_checkpoint_id=expected,
            request_id=uuid.uuid4().hex,
        )
        state = retry_write(self._stubs.threads.BulkUpdateState, request)
        return str(state.checkpoint.checkpoint_id)


def _encode_steps(records: Iterable[Record]) -> Iterator[ts.StateSuperstep]:
    for record in records:
        node = PUT_WRITES if record.checkpoint is None else PUT
        for value in encode_record(record):
            values = payload_pb2.Payload(json=f'{{"{CHANNEL}":{value}}}')
            yield ts.StateSuperstep(updates=[ts.StateUpdate(values=values, as_node=node)])


def _split_changes(steps: Iterable[ts.StateSuperstep]) -> Iterator[list[ts.StateSuperstep]]:
    """Steps in as few changes as a server takes."""
    change: list[ts.StateSuperstep] = []
    size = 0
    for step in steps:
        length = step.ByteSize()
        if change and (size + length > _LARGEST_CHANGE or len(change) == _LONGEST_CHANGE):
            yield change
            change, size = [], 0
        change.append(step)
        size += length
    yield change


def _measure_all(entries: Iterator[LogEntry]) -> int | None:
    depth = None
    for entry in entries:
        depth = entry.depth
    return depth


def _unless_missing(method: Callable[..., Any], request: Any) -> Any:
    try:
        return retry_read(method, request)
    except GraphdError as problem:
        if problem.reason == "THREAD_NOT_FOUND":
            return None
        raise


def _raise_unless_changed(problem: GraphdError, attempt: int) -> None:
    """The thread was changed since it was read, and is read again a few times."""
    if problem.reason not in ("ETAG_MISMATCH", "CHECKPOINT_CONFLICT") or attempt == _ATTEMPTS - 1:
        raise problem
