"""States of the server as StateSnapshots."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2, graph_pb2, interrupt_pb2, payload_pb2, thread_pb2
from graphd.client.failures import stored_error
from graphd.client.labels import from_labels, to_labels
from graphd.declare.program import Program
from graphd.names import format_namespace, public_name
from graphd.values.command import Interrupt
from graphd.values.state import PregelTask, StateSnapshot

_SOURCES = {
    thread_pb2.CHECKPOINT_SOURCE_INPUT: "input",
    thread_pb2.CHECKPOINT_SOURCE_LOOP: "loop",
    thread_pb2.CHECKPOINT_SOURCE_UPDATE: "update",
    thread_pb2.CHECKPOINT_SOURCE_FORK: "fork",
}
_WAITING = (interrupt_pb2.INTERRUPT_STATE_OPEN, interrupt_pb2.INTERRUPT_STATE_ANSWERED)
BREAKPOINT = "breakpoint"


def values_of(program: Program | None, payload: payload_pb2.Payload) -> Any:
    """The state as a program reads it: objects where it declares objects."""
    stored = codec.value_of(payload)
    return stored if program is None else program.decode_state(stored)


def to_interrupt(interrupt: interrupt_pb2.Interrupt) -> Interrupt:
    """One question as programs see it."""
    return Interrupt(
        value=codec.value_of(interrupt.value),
        id=interrupt.interrupt_id,
        response_schema=codec.value_of(interrupt.response_schema),
        replaces=interrupt.replaces,
        differs=tuple(interrupt.differs),
    )


def is_question(interrupt: interrupt_pb2.Interrupt) -> bool:
    """Tells questions from breakpoints."""
    return interrupt.reason != BREAKPOINT or bool(interrupt.task_id)


def config_of(base: Mapping[str, Any], ref: payload_pb2.CheckpointRef) -> dict[str, Any]:
    """The config that names a checkpoint."""
    given = base.get("configurable") or {}
    return {
        "configurable": {
            "thread_id": given.get("thread_id"),
            "checkpoint_ns": format_namespace(ref.namespace),
            "checkpoint_id": ref.checkpoint_id,
        }
    }


def namespace_config(base: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The config that names a namespace of a thread."""
    thread = (base.get("configurable") or {}).get("thread_id")
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}


def subgraph_namespace(
    program: Program | None, task: thread_pb2.SnapshotTask | event_pb2.DueTask, levels: Sequence[str]
) -> str:
    """Where the subgraph of a task keeps its state, "" if it has none or keeps none."""
    found = program.nodes.get(public_name(task.node)) if program is not None else None
    if program is None or found is None:
        return format_namespace(task.namespace) if isinstance(task, thread_pb2.SnapshotTask) else ""
    below = found.subgraph or program.called.get(found.name)
    if below is None or below.persistence == graph_pb2.SUBGRAPH_PERSISTENCE_DISABLED:
        return ""
    persists = below.persistence == graph_pb2.SUBGRAPH_PERSISTENCE_PERSIST
    return format_namespace([*levels, task.node if persists else f"{task.node}:{task.task_id}"])


class SnapshotReader:
    """Turns snapshots of one thread into StateSnapshots."""

    def __init__(self, config: Mapping[str, Any], programs: Mapping[str, Program], *, subgraphs: bool = False) -> None:
        self._config, self._programs, self._subgraphs = config, programs, subgraphs

    def read_snapshot(self, state: thread_pb2.StateSnapshot, parents: Mapping[str, str] | None = None) -> StateSnapshot:
        """One state, with those of its subgraphs as far as they are there."""
        program = self._programs.get(state.graph)
        if not state.HasField("checkpoint"):
            return StateSnapshot(
                values=values_of(program, state.values) or {},
                next=(),
                config={"configurable": dict(self._config.get("configurable") or {})},
                metadata=None,
                created_at=None,
                parent_config=None,
                tasks=(),
                interrupts=(),
            )
        metadata = from_labels(state.metadata)
        metadata |= {"source": _SOURCES.get(state.source, "loop"), "step": state.step, "parents": dict(parents or {})}
        if state.run_id:
            metadata.setdefault("run_id", state.run_id)
        config = config_of(self._config, state.checkpoint)
        if state.checkpoint.namespace:
            here = {format_namespace(state.checkpoint.namespace): state.checkpoint.checkpoint_id}
            config["configurable"]["checkpoint_map"] = dict(parents or {}) | here
        below = dict(parents or {}) | {format_namespace(state.checkpoint.namespace): state.checkpoint.checkpoint_id}
        current = {i.interrupt_id for task in state.tasks for i in _current_interrupts(task)}
        levels = state.checkpoint.namespace
        tasks = tuple(self._read_task(program, task, state.tasks, below, levels) for task in state.tasks)
        return StateSnapshot(
            values=values_of(program, state.values),
            next=tuple(public_name(n) for n in state.next),
            config=config,
            metadata=metadata,
            created_at=_creation_time(state),
            parent_config=config_of(self._config, state.parent) if state.HasField("parent") else None,
            tasks=tasks,
            interrupts=to_interrupts(i for i in state.interrupts if i.interrupt_id in current),
        )

    def _read_task(
        self,
        program: Program | None,
        task: thread_pb2.SnapshotTask,
        tasks: Sequence[thread_pb2.SnapshotTask],
        parents: Mapping[str, str],
        levels: Sequence[str],
    ) -> PregelTask:
        state: Any = None
        if task.HasField("state") and task.state.HasField("checkpoint"):
            state = self.read_snapshot(task.state, parents)
        elif below := subgraph_namespace(program, task, levels):
            state = namespace_config(self._config, below)
            if self._subgraphs:
                state = StateSnapshot({}, (), state, None, None, None, (), ())
        name = public_name(task.node)
        return PregelTask(
            id=task.task_id,
            name=name,
            path=_task_path(task, tasks),
            error=stored_error(task.failure) if task.HasField("failure") else None,
            interrupts=to_interrupts(_current_interrupts(task)),
            state=state,
            result=_read_result(program, task.result) if task.HasField("result") else None,
        )


def _task_path(task: thread_pb2.SnapshotTask, tasks: Sequence[thread_pb2.SnapshotTask]) -> tuple[Any, ...]:
    """What made a task of a superstep, in LangGraph's notation."""
    if task.HasField("send_index"):
        return ("__pregel_push", task.send_index, False)
    handled = next((one for one in tasks if one.task_id == task.handled_task_id), None)
    if handled is not None:
        return (*_task_path(handled, ()), "node_error_handler", False)
    return ("__pregel_pull", public_name(task.node))


def _current_interrupts(task: thread_pb2.SnapshotTask) -> list[interrupt_pb2.Interrupt]:
    """The questions that a task waits for; of one that has its answers, what
    was asked last in each of its scopes."""
    waiting = [i for i in task.interrupts if i.state in _WAITING]
    if waiting:
        return waiting
    return list({(i.task_id, i.scope): i for i in task.interrupts}.values())


def _read_result(program: Program | None, result: payload_pb2.Payload) -> Any:
    value = codec.value_of(result)
    if value is None:
        return {}
    if program is None or program.is_root:
        return value
    if program.function is not None:
        return program.decode_state(value)
    return program.decode_state(combine_writes(value) if isinstance(value, list) else value)


def combine_writes(writes: list[dict[str, Any]]) -> dict[str, Any]:
    """Several updates of one task as one, in LangGraph's notation."""
    found: dict[str, list[Any]] = {}
    for write in writes:
        for key, value in write.items():
            found.setdefault(key, []).append(value)
    return {k: v[0] if len(v) == 1 else {"$writes": v} for k, v in found.items()}


def to_interrupts(interrupts: Iterable[interrupt_pb2.Interrupt]) -> tuple[Interrupt, ...]:
    """The questions among interrupts."""
    return tuple(to_interrupt(i) for i in interrupts if is_question(i))


def _creation_time(state: thread_pb2.StateSnapshot) -> str:
    moment = state.create_time.ToDatetime(tzinfo=datetime.timezone.utc)
    return moment.isoformat(timespec="microseconds")


def format_timestamp(moment: Any) -> str:
    """A timestamp as text."""
    return str(moment.ToDatetime(tzinfo=datetime.timezone.utc).isoformat(timespec="microseconds"))


def source_of(source: int) -> str:
    """What made a checkpoint, in a word."""
    return next((word for known, word in _SOURCES.items() if known == source), "loop")


def user_metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that the caller gave to the run."""
    return from_labels(to_labels(config))
