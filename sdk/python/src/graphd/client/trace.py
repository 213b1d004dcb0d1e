"""The "tasks", "checkpoints" and "debug" streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from graphd._gen.v1 import event_pb2 as pb
from graphd.client import snapshots
from graphd.client.failures import stored_error
from graphd.client.items import Item
from graphd.declare.program import Program
from graphd.names import public


class Trace:
    """Shows what a run does, task by task and checkpoint by checkpoint."""

    def __init__(
        self,
        modes: Collection[str],
        config: Mapping[str, Any],
        program: Callable[[tuple[str, ...]], Program | None],
        *,
        stored: bool,
    ) -> None:
        self._modes, self._config, self._program = set(modes), config, program
        self._stored = stored  # a run without a thread has no checkpoints to show
        self._results: dict[str, Any] = {}
        self._cached: set[str] = set()

    def wrote(self, event: pb.Event, value: Any) -> None:
        """Remembers what a task has written, to show it when the task has ended."""
        self._results[event.task_id] = value
        if event.update.cached:
            self._cached.add(event.task_id)

    def task(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        change, node = event.task, public(event.node)
        if not self._modes & {"tasks", "debug"}:
            return
        base = {"id": event.task_id, "name": node}
        match change.phase:
            case pb.TaskChange.PHASE_SCHEDULED:
                data = base | {"input": self._input(levels, event), "triggers": tuple(change.triggers)}
                yield from self._task_item(levels, event, "task", data)
            case pb.TaskChange.PHASE_SUCCEEDED if event.task_id not in self._cached:
                result = self._results.pop(event.task_id, None)
                program = self._program(levels)
                if isinstance(result, list) and not (program is not None and program.is_root):
                    result = snapshots.gathered(result)
                data = base | {"error": None, "result": result or {}, "interrupts": []}
                yield from self._task_item(levels, event, "task_result", data)
            case pb.TaskChange.PHASE_FAILED:
                error = stored_error(change.failure)
                data = base | {"error": error, "result": {}, "interrupts": []}
                yield from self._task_item(levels, event, "task_result", data)

            case pb.TaskChange.PHASE_RESTARTED if "debug" in self._modes:
                data = base | {"attempt": event.attempt}
                yield Item("debug", levels, self._wrapped(event, event.step, "task_restart", data))

    def _input(self, levels: tuple[str, ...], event: pb.Event) -> Any:
        program = self._program(levels)
        if not event.task.HasField("value"):
            return None
        return snapshots.values_of(program, event.task.value)

    def _task_item(self, levels: tuple[str, ...], event: pb.Event, kind: str, data: dict[str, Any]) -> Iterator[Item]:
        if "tasks" in self._modes:
            yield Item("tasks", levels, data)
        if "debug" in self._modes:
            yield Item("debug", levels, self._wrapped(event, event.step, kind, data))

    def _wrapped(self, event: pb.Event, step: int, kind: str, data: Any) -> dict[str, Any]:
        return {"step": step, "timestamp": snapshots.iso(event.time), "type": kind, "payload": data}

    def checkpoint(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
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
            "next": [public(t.node) for t in saved.next],
            "tasks": [{"id": t.task_id, "name": public(t.node), "interrupts": (), "state": None} for t in saved.next],
        }
        if "checkpoints" in self._modes:
            yield Item("checkpoints", levels, data)
        if "debug" in self._modes:
            yield Item("debug", levels, self._wrapped(event, event.step, "checkpoint", data))
