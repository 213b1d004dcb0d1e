"""Reads and writes the states of one thread."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.home import Home
from graphd.client.rpcerrors import reason_of
from graphd.client.server import unary
from graphd.client.snapshots import Reader, config_of
from graphd.client.threads import checkpoint_ref, levels
from graphd.constants import END
from graphd.errors import GraphdError, InvalidUpdateError
from graphd.graph.names import wire
from graphd.graph.program import Program
from graphd.types import StateSnapshot, StateUpdate
from graphd.worker.outcome import update_object

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
        if not supersteps:
            raise ValueError("No supersteps provided")
        if any(not updates for updates in supersteps):
            raise ValueError("No updates provided")
        for updates in supersteps:
            _check(updates)
        reference = checkpoint_ref(self._configurable)
        for updates in supersteps:
            reference = self._superstep(reference, updates)
        return config_of(self._config, reference)

    def _superstep(self, at: Any, updates: Sequence[StateUpdate]) -> Any:
        if len(updates) > 1:
            raise InvalidUpdateError("graphd writes one update per superstep for now")
        update = StateUpdate(*updates[0])
        request = ts.UpdateStateRequest(
            thread_id=self._thread,
            as_node=wire(update.as_node or ""),
            supersede_interrupts=True,
            request_id=uuid.uuid4().hex,
        )
        if at.checkpoint_id or at.namespace:
            request.at.CopyFrom(at)
        if update.values is None:
            request.values.json = "null"
        else:
            request.values.CopyFrom(codec.payload(update_object(update.values, self._program)))
        try:
            return unary(self._stubs.UpdateState, request).checkpoint
        except GraphdError as error:
            if reason_of(error) != "THREAD_NOT_FOUND":
                raise
        ensure_thread(self._home, self._program, self._thread)
        return unary(self._stubs.UpdateState, request).checkpoint


def _check(updates: Sequence[StateUpdate]) -> None:
    if len(updates) < 2:
        return
    for update in updates:
        as_node = StateUpdate(*update).as_node
        if as_node is None:
            raise InvalidUpdateError("as_node is required when applying multiple updates")
        if as_node in (END, "__input__", "__copy__"):
            raise InvalidUpdateError(f"as_node {as_node!r} takes one update, and alone in its superstep")


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
