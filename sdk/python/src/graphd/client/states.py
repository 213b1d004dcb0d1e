"""Reads and writes the states of one thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphd._gen.v1 import thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client import updates
from graphd.client.home import Home
from graphd.client.rpcerrors import InvalidUpdate, reason_of
from graphd.client.server import unary
from graphd.client.snapshots import Reader, config_of
from graphd.client.threads import checkpoint_ref, levels
from graphd.constants import TASK_SEPARATOR
from graphd.errors import GraphdError
from graphd.graph.names import public
from graphd.graph.program import Program
from graphd.types import StateSnapshot, StateUpdate

_PAGE = 100


class States:
    """One thread, as seen by one graph."""

    def __init__(
        self, home: Home, program: Program, programs: Mapping[str, Program], thread: str, config: Mapping[str, Any]
    ) -> None:
        self._stubs, self._thread, self._config = home.server.stubs.threads, thread, config
        self._program, self._home = program, home
        self._reader = Reader(config, programs)

    @property
    def _configurable(self) -> Mapping[str, Any]:
        given: Mapping[str, Any] = self._config.get("configurable") or {}
        return given

    def get(self, *, subgraphs: bool) -> StateSnapshot:
        """The newest state, or that of the checkpoint which the config names."""
        request = ts.GetStateRequest(thread_id=self._thread, subgraphs=subgraphs)
        reference = checkpoint_ref(self._configurable)
        if reference.checkpoint_id or reference.namespace:
            request.at.CopyFrom(reference)
        try:
            state = unary(self._stubs.GetState, request)
        except GraphdError as error:
            if reason_of(error) != "THREAD_NOT_FOUND":
                raise
            return StateSnapshot({}, (), {"configurable": dict(self._configurable)}, None, None, None, (), ())
        return self._reader.snapshot(state)

    def history(
        self, wanted: Mapping[str, Any], before: Mapping[str, Any] | None, limit: int | None
    ) -> Iterator[StateSnapshot]:
        """Checkpoints, newest first, that have this metadata."""
        token, left = "", limit
        boundary = ((before or {}).get("configurable") or {}).get("checkpoint_id")
        passed = boundary is None
        while left is None or left > 0:
            request = ts.ListCheckpointsRequest(
                thread_id=self._thread,
                namespace=levels(str(self._configurable.get("checkpoint_ns") or "")),
                page_size=_PAGE,
                page_token=token,
                include_values=True,
            )
            try:
                page = unary(self._stubs.ListCheckpoints, request)
            except GraphdError as error:
                if reason_of(error) == "THREAD_NOT_FOUND":
                    return
                raise
            for state in page.checkpoints:
                snapshot = self._reader.snapshot(state)
                if not passed:
                    passed = state.checkpoint.checkpoint_id == boundary
                    continue
                metadata = snapshot.metadata or {}
                if any(metadata.get(k) != v for k, v in wanted.items()):
                    continue
                yield snapshot
                if left is not None:
                    left -= 1
                    if left <= 0:
                        return
            token = page.next_page_token
            if not token:
                return

    def update(self, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Writes one checkpoint per superstep; returns the config of the last."""
        request = ts.BulkUpdateStateRequest(
            thread_id=self._thread,
            supersteps=updates.supersteps(self._subject(), supersteps),
            supersede_interrupts=True,
            request_id=uuid.uuid4().hex,
        )
        at = checkpoint_ref(self._configurable)
        if at.checkpoint_id or at.namespace:
            request.at.CopyFrom(at)
        try:
            written = self._update(request)
        except GraphdError as error:
            if reason_of(error) == "INVALID_FIELD":
                raise InvalidUpdate(
                    str(error), reason=error.reason, code=error.code, violations=error.violations
                ) from None
            raise
        return config_of(self._config, written.checkpoint)

    def _update(self, request: ts.BulkUpdateStateRequest) -> thread_pb2.StateSnapshot:
        try:
            written: thread_pb2.StateSnapshot = unary(self._stubs.BulkUpdateState, request)
        except GraphdError as error:
            if reason_of(error) != "THREAD_NOT_FOUND":
                raise
            ensure_thread(self._home, self._program, self._thread)
            written = unary(self._stubs.BulkUpdateState, request)
        return written

    def _subject(self) -> Program:
        """The graph that is written to: the root, or the one in the namespace."""
        program = self._program
        for level in levels(str(self._configurable.get("checkpoint_ns") or "")):
            name = public(level.partition(TASK_SEPARATOR)[0])
            child = program.children().get(name)
            if child is None:
                raise ValueError(f"node {name!r} of graph {program.public_name!r} is no subgraph")
            program = child.program
        return program


def ensure_thread(home: Home, program: Program, thread: str) -> None:
    """Makes a thread for a graph unless there is one."""
    request = ts.CreateThreadRequest(thread_id=thread)
    request.thread.graph = program.name
    request.thread.graph_version = home.versions.get(program.name, "")
    try:
        unary(home.server.stubs.threads.CreateThread, request)
    except GraphdError as error:
        if reason_of(error) != "THREAD_EXISTS":
            raise
