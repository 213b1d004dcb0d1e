"""The "tasks", "checkpoints" and "debug" streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import interrupt_pb2, payload_pb2
from graphd.client import snapshots
from graphd.client.called_task import CalledTask
from graphd.client.failures import stored_error
from graphd.client.items import Item
from graphd.constants import END, START, TASK_SEPARATOR
from graphd.declare.program import Program
from graphd.names import public_name
from graphd.runtime.local_runs import LocalRun


class Trace:
    """Shows what a run does, task by task and checkpoint by checkpoint."""

    def __init__(
        self,
        modes: Collection[str],
        config: Mapping[str, Any],
        program: Callable[[tuple[str, ...]], Program | None],
        *,
        stored: bool,
        local: LocalRun | None,
    ) -> None:
        self._modes, self._config, self._program = set(modes), config, program
        self._local = local
        self._stored = stored  # a run without a thread has no checkpoints to show
        self._results: dict[str, Any] = {}
        self._cached: set[str] = set()
        self._questions: dict[str, interrupt_pb2.Interrupt] = {}
        self._interrupted: list[tuple[tuple[str, ...], pb.Event]] = []

    def record_update(self, event: pb.Event, value: Any) -> None:
        """Remembers what a task has written, to show it when the task has ended."""
        self._results[event.task_id] = value
        if event.update.cached:
            self._cached.add(event.task_id)

    def task_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        change, node = event.task, public_name(event.node)
        if not self._modes & {"tasks", "debug"}:
            return
        base = {"id": event.task_id, "name": node}
        match change.phase:
            case pb.TaskChange.PHASE_SCHEDULED:
                program = self._program(levels)
                triggers = (START,) if program is not None and program.function else tuple(change.triggers)
                data = base | {"input": self._read_input(levels, event), "triggers": triggers}
                yield from self._items_of(levels, event, "task", data)
            case pb.TaskChange.PHASE_SUCCEEDED if event.task_id not in self._cached:
                result = self._results.pop(event.task_id, None)
                program = self._program(levels)
                if program is not None and program.function:
                    result = {END: result}
                elif isinstance(result, list) and not (program is not None and program.is_root):
                    result = snapshots.combine_writes(result)
                data = base | {"error": None, "result": result or {}, "interrupts": []}
                yield from self._items_of(levels, event, "task_result", data)
            case pb.TaskChange.PHASE_FAILED:
                data = base | {"error": self._error_of(change.failure), "result": {}, "interrupts": []}
                yield from self._items_of(levels, event, "task_result", data)
            case pb.TaskChange.PHASE_INTERRUPTED:
                self._interrupted.append((levels, event))
                yield from self._interrupted_items()
            case pb.TaskChange.PHASE_RESTARTED if "debug" in self._modes:
                data = base | {"attempt": event.attempt}
                yield Item("debug", levels, self._debug_data(event, event.step, "task_restart", data))

    def called_task_items(self, levels: tuple[str, ...], event: pb.Event, told: CalledTask) -> Iterator[Item]:
        """Shows what became of a task that the code of a node called."""
        if (shown := told.build_trace()) is not None:
            yield from self._items_of(levels, event, *shown)

    def _error_of(self, failure: payload_pb2.Failure) -> BaseException | None:
        """The error of a task: the very exception when it was raised in this process."""
        error = stored_error(failure)
        raised = self._local.find_error(failure) if self._local is not None and isinstance(error, Exception) else None
        return error if raised is None else raised

    def question_items(self, interrupts: Iterable[interrupt_pb2.Interrupt]) -> Iterator[Item]:
        """Shows the tasks that wait for these questions, if that is not done."""
        self._questions |= {one.interrupt_id: one for one in interrupts if snapshots.is_question(one)}
        yield from self._interrupted_items()

    def forget_questions(self, interrupts: Iterable[interrupt_pb2.Interrupt]) -> None:
        """Forgets questions that are not open any more."""
        for one in interrupts:
            self._questions.pop(one.interrupt_id, None)

    def _interrupted_items(self) -> Iterator[Item]:
        # The event of a task comes before its questions, that of a subgraph's node after them.
        for levels, event in [*self._interrupted]:
            asked = [snapshots.to_interrupt(one) for one in self._questions.values() if _asks(event, one)]
            if not asked:
                continue
            self._interrupted.remove((levels, event))
            shown = [{"value": q.value, "id": q.id, "response_schema": q.response_schema} for q in asked]
            data: dict[str, Any] = {"error": None, "result": {}, "interrupts": shown}
            data = {"id": event.task_id, "name": public_name(event.node)} | data
            yield from self._items_of(levels, event, "task_result", data)

    def _read_input(self, levels: tuple[str, ...], event: pb.Event) -> Any:
        program = self._program(levels)
        if not event.task.HasField("value"):
            return None
        stored = codec.value_of(event.task.value)
        return stored if program is None else program.decode_input(stored)

    def _items_of(self, levels: tuple[str, ...], event: pb.Event, kind: str, data: dict[str, Any]) -> Iterator[Item]:
        if "tasks" in self._modes:
            yield Item("tasks", levels, data)
        if "debug" in self._modes:
            yield Item("debug", levels, self._debug_data(event, event.step, kind, data))

    def _debug_data(self, event: pb.Event, step: int, kind: str, data: Any) -> dict[str, Any]:
        return {"step": step, "timestamp": snapshots.format_timestamp(event.time), "type": kind, "payload": data}

    def checkpoint_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        if not self._stored or not self._modes & {"checkpoints", "debug"}:
            return
        saved = event.checkpoint
        source = snapshots.source_of(saved.source)
        metadata = snapshots.user_metadata(self._config) | {"source": source, "step": event.step, "parents": {}}
        data = {
            "config": snapshots.config_of(self._config, saved.checkpoint),
            "parent_config": snapshots.config_of(self._config, saved.parent) if saved.HasField("parent") else None,
            "values": snapshots.values_of(self._program(levels), saved.values),
            "metadata": metadata,
            "next": [public_name(t.node) for t in saved.next],
            "tasks": [
                {"id": t.task_id, "name": public_name(t.node), "interrupts": (), "state": None} for t in saved.next
            ],
        }
        if "checkpoints" in self._modes:
            yield Item("checkpoints", levels, data)
        if "debug" in self._modes:
            yield Item("debug", levels, self._debug_data(event, event.step, "checkpoint", data))


def _asks(event: pb.Event, question: interrupt_pb2.Interrupt) -> bool:
    """The question is one of the event's task, or of a graph that runs in it."""
    around = [level.partition(TASK_SEPARATOR) for level in question.checkpoint.namespace]
    return question.task_id == event.task_id or any(
        task == event.task_id if task else node == event.node for node, _, task in around
    )
