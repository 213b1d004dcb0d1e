"""Events of the server as the items of LangGraph's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2 as pb
from graphd.client import snapshots
from graphd.client.chat import MessageStream
from graphd.client.failures import stored_error
from graphd.constants import INTERRUPT, ROOT
from graphd.graph.program import Program
from graphd.names import namespace, public, public_levels

FINAL = "final"
"""A mode of our own: nothing on the way, the state at the end."""

ReadState = Callable[[Sequence[str]], Any]

_CHANNELS = {
    "values": (pb.CHANNEL_VALUES,),
    "updates": (pb.CHANNEL_UPDATES,),
    "messages": (pb.CHANNEL_MESSAGES, pb.CHANNEL_UPDATES, pb.CHANNEL_VALUES, pb.CHANNEL_TASKS),
    "custom": (pb.CHANNEL_CUSTOM,),
    "tasks": (pb.CHANNEL_TASKS, pb.CHANNEL_UPDATES),
    "checkpoints": (pb.CHANNEL_DEBUG,),
    "debug": (pb.CHANNEL_DEBUG, pb.CHANNEL_UPDATES),
}


def filter_of(modes: Sequence[str], *, subgraphs: bool, some_keys: bool) -> pb.EventFilter:
    """The events that the modes need."""
    if list(modes) == [FINAL]:
        return pb.EventFilter(channels=[pb.CHANNEL_CUSTOM], custom_names=["nothing"], depth=0)
    channels = sorted({c for mode in modes for c in _CHANNELS[mode]} | ({pb.CHANNEL_UPDATES} if some_keys else set()))
    return pb.EventFilter(channels=channels, depth=None if subgraphs else 0)


class Item:
    """One thing to yield: its mode, where it happened, and its payload."""

    __slots__ = ("data", "interrupts", "levels", "mode")

    def __init__(self, mode: str, levels: tuple[str, ...], data: Any, interrupts: tuple[Any, ...] = ()) -> None:
        self.mode, self.levels, self.data, self.interrupts = mode, levels, data, interrupts


class Translator:
    """Turns the events of one call into items, in order."""

    def __init__(
        self,
        modes: Sequence[str],
        programs: Mapping[str, Program],
        root: Program,
        config: Mapping[str, Any],
        output_keys: str | Sequence[str] | None,
        read_state: ReadState,
        *,
        subgraphs: bool,
        stored: bool = True,
    ) -> None:
        self._modes = set(modes)
        self._stored = stored  # a run without a thread has no checkpoints to show
        self._programs, self._root, self._config = programs, root, config
        self._keys = output_keys
        self._read_state = read_state
        self._values: dict[tuple[str, ...], Any] = {}
        self._messages = MessageStream(config)
        self._results: dict[str, Any] = {}
        self._cached: set[str] = set()
        self._raised: set[str] = set()
        self._subgraphs = subgraphs
        self._touched: set[str] = set()
        self._last_shown: Any = None

    def items(self, event: pb.Event) -> Iterator[Item]:
        """The items that an event makes."""
        levels = public_levels(event.namespace)
        match event.WhichOneof("kind"):
            case "values":
                yield from self._state(levels, event.values)
            case "update":
                yield from self._update(levels, event)
            case "interrupt":
                yield from self._interrupt(levels, event)
            case "task":
                yield from self._task(levels, event)
            case "checkpoint":
                yield from self._checkpoint(levels, event)
            case "custom":
                if "custom" in self._modes:
                    yield Item("custom", levels, codec.value_of(event.custom.value))
            case "message":
                if "messages" in self._modes:
                    yield from (Item("messages", levels, m) for m in self._messages.piece(event))

    def _program(self, levels: tuple[str, ...]) -> Program | None:
        program: Program | None = self._root
        for level in levels:
            child = program.graphs().get(level.partition(":")[0]) if program else None
            program = child.program if child is not None else None
        return program

    def _is_root(self, levels: tuple[str, ...]) -> bool:
        program = self._program(levels)
        return program is not None and ROOT in program.channels

    def _state(self, levels: tuple[str, ...], event: pb.StateValues) -> Iterator[Item]:
        if levels and not event.HasField("checkpoint"):
            return  # the progress of a subgraph that waits; LangGraph shows it for the root alone
        state = snapshots.values_of(self._program(levels), event.values)
        self._values[levels] = state
        self._messages.saw(state)
        if "values" in self._modes and self._is_news(levels, state):
            yield Item("values", levels, self._some(levels, state))

    def _is_news(self, levels: tuple[str, ...], state: Any) -> bool:
        """With chosen keys a state is shown only when one of them was written."""
        if levels or self._keys is None or not isinstance(state, dict):
            return True
        keys = {self._keys} if isinstance(self._keys, str) else set(self._keys)
        before, self._last_shown = self._last_shown, {k: state[k] for k in keys if k in state}
        written, self._touched = self._touched, set()
        return bool(written & keys) or (self._last_shown != before and bool(self._last_shown))

    def _some(self, levels: tuple[str, ...], state: Any) -> Any:
        if levels or self._keys is None or not isinstance(state, dict):
            return state
        if isinstance(self._keys, str):
            return state.get(self._keys)
        return {k: state[k] for k in self._keys if k in state}

    def _update(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        node, value = public(event.node), self._written(levels, event.update)
        self._results[event.task_id] = value
        if event.update.cached:
            self._cached.add(event.task_id)
        for part in value if isinstance(value, list) else [value]:
            if not levels and isinstance(part, dict):
                self._touched.update(part)
        if "messages" in self._modes and not event.update.cached:
            yield from (Item("messages", levels, m) for m in self._messages.result(event, value))
        if "updates" not in self._modes:
            return
        shown = self._shown(levels, value)
        data = {node: shown}
        if event.update.cached:
            data["__metadata__"] = {"cached": True}
        yield Item("updates", levels, data)

    def _written(self, levels: tuple[str, ...], update: pb.NodeUpdate) -> Any:
        program, value = self._program(levels), codec.value_of(update.values)
        if program is None or ROOT in program.channels:
            return value
        decoders = snapshots.decoders_of(program)

        def read(fields: Any) -> Any:
            if not isinstance(fields, dict):
                return fields
            return {k: decoders[k](v) if k in decoders else v for k, v in fields.items()}

        return [read(v) for v in value] if isinstance(value, list) else read(value)

    def _shown(self, levels: tuple[str, ...], value: Any) -> Any:
        if levels or self._keys is None or not isinstance(value, dict):
            return value
        if isinstance(self._keys, str):
            return value.get(self._keys)
        return {k: v for k, v in value.items() if k in self._keys} or None

    def _interrupt(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        raised = list(event.interrupt.interrupts)
        self._raised.update(i.interrupt_id for i in raised)
        if not any(snapshots.is_question(i) for i in raised):
            if "updates" in self._modes:
                yield Item("updates", (), {INTERRUPT: ()})
            return
        by_task: dict[str, list[Any]] = {}
        for one in raised:
            by_task.setdefault(one.task_id, []).append(one)
        for group in by_task.values():
            yield from self._asked(levels, tuple(snapshots.question(i) for i in group))

    def _asked(self, levels: tuple[str, ...], asked: tuple[Any, ...]) -> Iterator[Item]:
        # A question shows up where it was asked and in every graph around it.
        for depth in range(len(levels) if self._subgraphs else 0, -1, -1):
            where = levels[:depth]
            if "updates" in self._modes:
                yield Item("updates", where, {INTERRUPT: asked})
            if "values" in self._modes:
                yield Item("values", where, self._with_questions(where, asked), asked)

    @property
    def wants_final(self) -> bool:
        """Only the state at the end is of interest."""
        return FINAL in self._modes

    def final(self, state: Any, questions: Iterable[Any]) -> Item:
        """The state at the end of a call, with what is open then."""
        asked = tuple(snapshots.question(i) for i in questions if snapshots.is_question(i))
        return Item(FINAL, (), self._some((), state), asked)

    def has_raised(self, identifiers: Iterable[str]) -> bool:
        """All these questions were shown by this call."""
        return self._raised.issuperset(identifiers)

    def still_open(self, interrupts: Iterable[Any]) -> Iterator[Item]:
        """Shows the questions that wait since an earlier call, if they do."""
        for one in interrupts:
            if one.interrupt_id not in self._raised and snapshots.is_question(one):
                yield from self._asked(public_levels(one.checkpoint.namespace), (snapshots.question(one),))

    def _with_questions(self, levels: tuple[str, ...], asked: tuple[Any, ...]) -> Any:
        if levels not in self._values:
            self._values[levels] = self._read_state(levels)
        state = self._some(levels, self._values[levels])
        return {**state, INTERRUPT: asked} if isinstance(state, dict) else {INTERRUPT: asked}

    def _task(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        change, node = event.task, public(event.node)
        if change.phase == pb.TaskChange.PHASE_SCHEDULED:
            self._messages.task(event)
        if not self._modes & {"tasks", "debug"}:
            return
        base = {"id": event.task_id, "name": node}
        match change.phase:
            case pb.TaskChange.PHASE_SCHEDULED:
                data = base | {"input": self._input(levels, event), "triggers": tuple(change.triggers)}
                yield from self._task_item(levels, event, "task", data)
            case pb.TaskChange.PHASE_SUCCEEDED if event.task_id not in self._cached:
                result = self._results.pop(event.task_id, None)
                if isinstance(result, list) and not self._is_root(levels):
                    result = snapshots.gathered(result)
                data = base | {"error": None, "result": result or {}, "interrupts": []}
                yield from self._task_item(levels, event, "task_result", data)
            case pb.TaskChange.PHASE_FAILED:
                error = stored_error(change.failure)
                data = base | {"error": error, "result": {}, "interrupts": []}
                yield from self._task_item(levels, event, "task_result", data)

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

    def _checkpoint(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
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


__all__ = ["Item", "Translator", "filter_of", "namespace"]
