"""Reads and writes the states of one thread."""

from __future__ import annotations

import builtins
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphd._gen.v1 import payload_pb2, thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client import updates
from graphd.client.connection import GraphConnection
from graphd.client.history import fold_checkpoints, mark_of
from graphd.client.snapshots import SnapshotReader, config_of, values_of
from graphd.client.state_reads import read_state
from graphd.constants import TASK_SEPARATOR
from graphd.declare.program import Program
from graphd.errors import DroppedQuestions, GraphdError
from graphd.names import checkpoint_ref, parse_namespace, public_levels, public_name
from graphd.runtime.failed_node import restore_error
from graphd.runtime.traced_runs import GraphState
from graphd.transport.errors import InvalidUpdate, reason_of
from graphd.transport.server import retry_read, retry_write
from graphd.values.state import StateSnapshot, StateUpdate

_PAGE = 100


class ThreadStates:
    """One thread, as seen by one graph."""

    def __init__(self, connection: GraphConnection, program: Program, thread: str, config: Mapping[str, Any]) -> None:
        self._stubs, self._thread, self._config = connection.server.stubs.threads, thread, config
        self._program, self._connection = program, connection
        self._reader = SnapshotReader(config, program.readable_programs)

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
            state = read_state(self._stubs, self._program.find_graph(self._levels()), request, opened=False)
        except GraphdError as error:
            if reason_of(error) != "THREAD_NOT_FOUND":
                raise
            return StateSnapshot({}, (), {"configurable": dict(self._configurable)}, None, None, None, (), ())
        reader = SnapshotReader(self._config, self._program.readable_programs, subgraphs=subgraphs)
        return reader.read_snapshot(self._with_origin(state))

    def _levels(self) -> tuple[str, ...]:
        """The namespace that the config names."""
        return public_levels(parse_namespace(str(self._configurable.get("checkpoint_ns") or "")))

    def _with_origin(self, state: thread_pb2.StateSnapshot) -> thread_pb2.StateSnapshot:
        """Replaces a parent that history does not show."""
        if not mark_of(state):
            return state
        for task in state.tasks:
            if task.failure.reason == "CANCELLED_BY_CLIENT":
                task.ClearField("failure")  # of such a call only what was finished is kept
        if state.HasField("parent"):
            for shown in fold_checkpoints(self._checkpoints(values=False)):
                if shown.checkpoint == state.checkpoint:
                    state.ClearField("parent")
                    if shown.HasField("parent"):
                        state.parent.CopyFrom(shown.parent)
                    break
        return state

    def history(
        self, wanted: Mapping[str, Any], before: Mapping[str, Any] | None, limit: int | None
    ) -> Iterator[StateSnapshot]:
        """Checkpoints, newest first, that have this metadata; of a config that
        names one, that one."""
        left, only = limit, self._configurable.get("checkpoint_id")
        boundary = ((before or {}).get("configurable") or {}).get("checkpoint_id")
        passed = boundary is None
        if left is not None and left <= 0:
            return
        for state in fold_checkpoints(self._checkpoints(values=True)):
            if not passed:
                passed = state.checkpoint.checkpoint_id == boundary
                continue
            if only and state.checkpoint.checkpoint_id != only:
                continue
            snapshot = self._reader.read_snapshot(state)
            metadata = snapshot.metadata or {}
            if any(metadata.get(k) != v for k, v in wanted.items()):
                continue
            yield snapshot
            if left is not None:
                left -= 1
                if left <= 0:
                    return

    def _checkpoints(self, *, values: bool) -> Iterator[thread_pb2.StateSnapshot]:
        token = ""
        while True:
            request = ts.ListCheckpointsRequest(
                thread_id=self._thread,
                namespace=parse_namespace(str(self._configurable.get("checkpoint_ns") or "")),
                page_size=_PAGE,
                page_token=token,
                include_values=values,
            )
            try:
                page = retry_read(self._stubs.ListCheckpoints, request, opened=False)
            except GraphdError as error:
                if reason_of(error) == "THREAD_NOT_FOUND":
                    return
                raise
            yield from page.checkpoints
            token = page.next_page_token
            if not token:
                return

    def update(self, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Writes one checkpoint per superstep; returns the config of the last."""
        request = ts.BulkUpdateStateRequest(
            thread_id=self._thread,
            supersteps=updates.build_supersteps(self._target_program(), supersteps),
            request_id=uuid.uuid4().hex,
        )
        at = checkpoint_ref(self._configurable)
        if at.checkpoint_id or at.namespace:
            request.at.CopyFrom(at)
        try:
            written = self._write_update(request)
        except GraphdError as error:
            raise _as_update_error(error) from None
        return config_of(self._config, written.checkpoint)

    def _write_update(self, request: ts.BulkUpdateStateRequest) -> thread_pb2.StateSnapshot:
        try:
            written: thread_pb2.StateSnapshot = retry_write(self._stubs.BulkUpdateState, request)
        except GraphdError as error:
            match reason_of(error):
                case "THREAD_NOT_FOUND":
                    ensure_thread(self._connection, self._program, self._thread)
                case "THREAD_INTERRUPTED":
                    asked = error.metadata.get("openInterruptIds", "")
                    text = f"the update drops questions without an answer: {asked}"
                    warnings.warn(text, DroppedQuestions, stacklevel=5)
                    request.supersede_interrupts = True
                case _:
                    raise
            written = retry_write(self._stubs.BulkUpdateState, request)
        return written

    def _target_program(self) -> Program:
        """The graph that is written to: the root, or the one in the namespace."""
        program = self._program
        for level in parse_namespace(str(self._configurable.get("checkpoint_ns") or "")):
            name = public_name(level.partition(TASK_SEPARATOR)[0])
            child = program.graphs.get(name)
            if child is None:
                raise ValueError(f"node {name!r} of graph {program.public_name!r} is no subgraph")
            program = child.program
        return program


def _as_update_error(error: GraphdError) -> Exception:
    """What LangGraph's programs expect of an update that is refused."""
    raised = error.metadata.get("failureType", "")
    if hasattr(builtins, raised):  # a conditional edge has raised it
        return restore_error(payload_pb2.Failure(type=raised, message=str(error)))
    text = {
        "AMBIGUOUS_NODE": "Ambiguous update, specify as_node",
        "NODE_NOT_FOUND": f"Node {error.metadata.get('node')} does not exist",
        "INVALID_FIELD": str(error),
    }.get(reason_of(error))
    if text is None:
        return error
    return InvalidUpdate(
        text, reason=error.reason, code=error.code, metadata=error.metadata, violations=error.violations
    )


def values_at(connection: GraphConnection, program: Program | None, thread: str, namespace: Sequence[str]) -> Any:
    """The values of a namespace of a thread as it is now; None for a graph without checkpoints."""
    return state_at(connection, program, thread, namespace).values


def state_at(connection: GraphConnection, program: Program | None, thread: str, namespace: Sequence[str]) -> GraphState:
    """A namespace of a thread as it is now; of a graph without checkpoints it has no values."""
    request = ts.GetStateRequest(thread_id=thread)
    request.at.namespace.extend(namespace)
    try:
        state = read_state(connection.server.stubs.threads, program, request)
    except GraphdError as error:
        if reason_of(error) != "CHECKPOINT_NOT_FOUND":
            raise
        return GraphState(None, -1, False)
    return GraphState(values_of(program, state.values), state.step, not state.next)


def ensure_thread(connection: GraphConnection, program: Program, thread: str) -> None:
    """Makes a thread for a graph unless there is one."""
    request = ts.CreateThreadRequest(thread_id=thread, request_id=uuid.uuid4().hex)
    request.thread.graph = program.name
    request.thread.graph_version = connection.version(program.name)
    try:
        retry_write(connection.server.stubs.threads.CreateThread, request)
    except GraphdError as error:
        if reason_of(error) != "THREAD_EXISTS":
            raise
