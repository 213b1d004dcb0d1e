"""The "tasks", "checkpoints" and "debug" streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import interrupt_pb2, payload_pb2
from graphd.client import snapshots
from graphd.client.called_task import CalledTask
from graphd.client.failures import stored_error
from graphd.client.items import Item, select_keys
from graphd.constants import END, NAMESPACE_SEPARATOR, START, TASK_SEPARATOR
from graphd.declare.program import Program
from graphd.names import find_levels, format_namespace, public_name
from graphd.runtime.local_runs import LocalRun
from graphd.values.command import Interrupt
from graphd.values.state import PregelTask, StateSnapshot

_NO_EVENT = pb.Event()


class Trace:
    """Shows what a run does, task by task and checkpoint by checkpoint."""

    def __init__(
        self,
        modes: Collection[str],
        config: Mapping[str, Any],
        program: Callable[[tuple[str, ...]], Program | None],
        keys: Callable[[tuple[str, ...]], str | Sequence[str] | None],
        *,
        stored: bool,
        local: LocalRun | None = None,
        folds: bool = False,
        subgraphs: bool = False,
    ) -> None:
        self._subgraphs = subgraphs
        self._modes, self._config, self._program, self._keys = set(modes), config, program, keys
        self._local = local
        self._stored = stored  # a run without a thread has no checkpoints to show
        self._folds, self._continues = folds, False
        self._before_call: dict[tuple[str, ...], payload_pb2.CheckpointRef | None] = {}
        self._current: dict[tuple[str, ...], str] = {}  # the newest checkpoint of each graph
        self._waiting: dict[str, tuple[tuple[str, ...], PregelTask]] = {}  # tasks that have asked before the call
        self._asked_before: set[str] = set()  # tasks with a graph that has asked before the call
        self._last: dict[tuple[str, ...], pb.Event] = {}  # the event of the newest task of each graph
        self._progress: dict[str, PregelTask] = {}
        self._results: dict[str, Any] = {}
        self._cached: set[str] = set()
        self._questions: dict[str, interrupt_pb2.Interrupt] = {}
        self._interrupted: list[tuple[tuple[str, ...], pb.Event]] = []

    def _waiting_items(self) -> Iterator[Item]:
        """Shows the tasks that wait since an earlier call, inner ones first. LangGraph runs them again."""
        for levels, task in reversed(self._waiting.values()):
            if levels and not self._subgraphs:
                continue
            asked = [i for i in task.interrupts if i.id in self._questions]
            if not asked or not self._modes & {"tasks", "debug"}:
                continue
            data: dict[str, Any] = {"id": task.id, "name": task.name, "error": None, "result": {}}
            shown = data | {"interrupts": [_as_data(one) for one in asked]}
            if "tasks" in self._modes:
                yield Item("tasks", levels, shown)
            if "debug" in self._modes:
                last = self._last.get(levels, _NO_EVENT)
                yield Item("debug", levels, self._debug_data(last, last.step, "task_result", shown))

    def record_update(self, event: pb.Event, value: Any) -> None:
        """Remembers what a task has written, to show it when the task has ended."""
        self._results[event.task_id] = value
        if event.update.cached:
            self._cached.add(event.task_id)

    def task_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        change, node = event.task, public_name(event.node)
        if change.phase == pb.TaskChange.PHASE_SCHEDULED:
            self._last[levels] = event
        else:
            self._waiting.pop(event.task_id, None)
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

    def open_question_items(self, interrupts: Iterable[interrupt_pb2.Interrupt]) -> Iterator[Item]:
        """Shows, at the end of a call, the tasks that wait for these questions of earlier calls."""
        self._asked_before.clear()
        yield from self.question_items(interrupts)
        yield from self._waiting_items()

    def forget_questions(self, interrupts: Iterable[interrupt_pb2.Interrupt]) -> None:
        """Forgets questions that are not open any more."""
        for one in interrupts:
            self._questions.pop(one.interrupt_id, None)

    def _interrupted_items(self) -> Iterator[Item]:
        # The event of a task comes before its questions, that of a subgraph's node after them.
        for levels, event in [*self._interrupted]:
            if event.task_id in self._asked_before:
                continue  # the graph in it may wait for questions of earlier calls, too
            asked = [snapshots.to_interrupt(one) for one in self._questions.values() if _asks(event, one)]
            if not asked:
                continue
            self._interrupted.remove((levels, event))
            shown = [_as_data(one) for one in asked]
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
        """Shows a checkpoint: one that was stored, or the one at which a stopped graph goes on."""
        if not self._stored or not self._modes & {"checkpoints", "debug"}:
            return
        saved = event.checkpoint
        self._current[levels] = saved.checkpoint.checkpoint_id
        parent = self._parent_of(levels, saved)
        source = snapshots.source_of(saved.source)
        parents = self._parents_of(levels)
        metadata = snapshots.user_metadata(self._config) | {"source": source, "step": event.step, "parents": parents}
        program = self._program(levels)
        data = {
            "config": snapshots.config_of(self._config, saved.checkpoint),
            "parent_config": snapshots.config_of(self._config, parent) if parent is not None else None,
            "values": snapshots.values_of(program, saved.values),
            "metadata": metadata,
            "next": [public_name(t.node) for t in saved.next],
            "tasks": [self._describe_task(program, levels, t) for t in saved.next],
        }
        if "checkpoints" in self._modes:
            yield Item("checkpoints", levels, data)
        if "debug" in self._modes:
            yield Item("debug", levels, self._debug_data(event, event.step, "checkpoint", data))

    def _parent_of(self, levels: tuple[str, ...], saved: pb.CheckpointSaved) -> payload_pb2.CheckpointRef | None:
        """The checkpoint before; of a call that shows as one checkpoint in history, the one before the call."""
        parent = saved.parent if saved.HasField("parent") else None
        if not self._folds:
            return parent
        if levels not in self._before_call:
            self._before_call[levels] = saved.checkpoint if self._continues else parent
            return parent
        return self._before_call[levels]

    def _parents_of(self, levels: tuple[str, ...]) -> dict[str, str]:
        """The checkpoints of the graphs around a graph, by namespace."""
        around = [find_levels(levels[:depth], self._current) for depth in range(len(levels))]
        return {format_namespace(above): self._current[above] for above in around if above in self._current}

    def _describe_task(self, program: Program | None, levels: tuple[str, ...], task: pb.DueTask) -> dict[str, Any]:
        """A due task, with what is known of it since an earlier call."""
        before = self._progress.get(task.task_id, PregelTask(task.task_id, "", ()))
        shown: dict[str, Any] = {"id": task.task_id, "name": public_name(task.node)}
        below = snapshots.subgraph_namespace(program, task, levels)
        state = snapshots.namespace_config(self._config, below) if below else None
        if before.error is not None:
            return shown | {"error": before.error, "state": state}
        if result := select_keys(before.result, self._keys(levels)):
            shown["result"] = result
        return shown | {"interrupts": tuple(_as_data(one) for one in before.interrupts), "state": state}

    def set_progress(self, tasks: Iterable[PregelTask]) -> None:
        """Takes what is known of the tasks of a superstep before the call goes on with it."""
        self._continues = True
        self._set_tasks((), tasks)

    def _set_tasks(self, levels: tuple[str, ...], tasks: Iterable[PregelTask]) -> None:
        for task in tasks:
            self._progress[task.id] = task
            if task.interrupts:
                self._waiting[task.id] = levels, task
                if task.state is not None:
                    self._asked_before.add(task.id)
            if isinstance(task.state, StateSnapshot):
                self._set_tasks(self._set_position(task.state), task.state.tasks)

    def _set_position(self, state: StateSnapshot) -> tuple[str, ...]:
        """Takes where a graph stands that goes on; it may tell of it later than the graphs inside of it."""
        place = state.config["configurable"]
        levels = tuple(place["checkpoint_ns"].split(NAMESPACE_SEPARATOR))
        if place.get("checkpoint_id"):
            self._current[levels] = place["checkpoint_id"]
        return levels


def _as_data(question: Interrupt) -> dict[str, Any]:
    """A question as these streams show it."""
    return {"value": question.value, "id": question.id, "response_schema": question.response_schema}


def _asks(event: pb.Event, question: interrupt_pb2.Interrupt) -> bool:
    """The question is one of the event's task, or of a graph that runs in it."""
    around = [level.partition(TASK_SEPARATOR) for level in question.checkpoint.namespace]
    return question.task_id == event.task_id or any(
        task == event.task_id if task else node == event.node for node, _, task in around
    )
