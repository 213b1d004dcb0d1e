"""Events of the server as the items of LangGraph's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2 as pb
from graphd.client import snapshots
from graphd.client.items import FINAL, Item
from graphd.client.message_stream import MessageStream
from graphd.client.omitted_values import warn_omitted
from graphd.client.trace import Trace
from graphd.constants import INTERRUPT
from graphd.declare.program import Program
from graphd.names import public_levels, public_name

_SHOWN_IN = {
    "values": frozenset({"values", "messages"}),
    "update": frozenset({"updates", "messages", "tasks", "debug"}),
    "task": frozenset({"tasks", "debug"}),
    "checkpoint": frozenset({"checkpoints", "debug"}),
    "custom": frozenset({"custom"}),
    "message": frozenset({"messages"}),
}
_SHOWN_AS = {
    "values": "the state",
    "update": "the update",
    "task": "the input",
    "checkpoint": "the state of a checkpoint",
    "custom": "a custom event",
    "message": "a message",
}
ReadState = Callable[[Sequence[str]], Any]


class Translator:
    """Turns the events of one call into items, in order."""

    def __init__(
        self,
        modes: Sequence[str],
        root: Program,
        config: Mapping[str, Any],
        output_keys: str | Sequence[str] | None,
        read_state: ReadState,
        *,
        subgraphs: bool,
        stored: bool = True,
    ) -> None:
        self._modes = set(modes)
        self._root = root
        self._trace = Trace(modes, config, self._root.find_graph, stored=stored)
        self._keys = output_keys
        self._read_state = read_state
        self._stored: set[tuple[str, ...]] = set()  # graphs whose states are in checkpoints
        self._values: dict[tuple[str, ...], Any] = {}
        self._messages = MessageStream(config, self._root.find_graph)
        self._raised: set[str] = set()
        self._subgraphs = subgraphs
        self._touched: set[str] = set()
        self._last_shown: Any = None

    def translate_event(self, event: pb.Event) -> Iterator[Item]:
        """The items that an event makes."""
        levels = public_levels(event.namespace)
        if event.value_omitted and self._skip_omitted(levels, event):
            return
        match event.WhichOneof("kind"):
            case "values":
                yield from self._state_items(levels, event.values)
            case "update":
                yield from self._update_items(levels, event)
            case "interrupt":
                yield from self._interrupt_items(levels, event)
                yield from self._trace.question_items(event.interrupt.interrupts)
            case "interrupt_resolved":
                self._trace.forget_questions(event.interrupt_resolved.interrupts)
            case "task":
                if event.task.phase == pb.TaskChange.PHASE_SCHEDULED:
                    self._messages.record_triggers(event)
                elif event.task.phase == pb.TaskChange.PHASE_RESTARTED:
                    self._messages.record_restart(event)
                yield from self._trace.task_items(levels, event)
            case "checkpoint":
                yield from self._trace.checkpoint_items(levels, event)
            case "custom":
                if "custom" in self._modes:
                    yield Item("custom", levels, codec.value_of(event.custom.value))
            case "message":
                if "messages" in self._modes:
                    yield from (Item("messages", levels, m) for m in self._messages.emitted_messages(event))

    def _skip_omitted(self, levels: tuple[str, ...], event: pb.Event) -> bool:
        """Warns that an event has lost its value; True when nothing else of it shows."""
        kind = event.WhichOneof("kind") or ""
        is_shown = kind != "task" or event.task.phase == pb.TaskChange.PHASE_SCHEDULED
        if kind == "values":
            is_shown = self._shows_state(levels, event.values)
            self._values.pop(levels, None)
        elif kind == "update":
            self._trace.record_update(event, None)
            if not levels:
                self._touched.update(self._root.channels)
        if is_shown and self._modes & _SHOWN_IN.get(kind, frozenset()):
            warn_omitted(event, _SHOWN_AS[kind])
        return kind in ("values", "update", "custom", "message")

    @property
    def wants_values(self) -> bool:
        """States are shown."""
        return "values" in self._modes

    def program_of(self, event: pb.Event) -> Program | None:
        """The graph that an event is about, if the program has it."""
        return self._root.find_graph(public_levels(event.namespace))

    def _shows_state(self, levels: tuple[str, ...], event: pb.StateValues) -> bool:
        """Whether a state shows; LangGraph shows the progress of a graph that waits for the root alone."""
        if event.HasField("checkpoint"):
            self._stored.add(levels)
            return True
        return not levels or levels not in self._stored

    def _state_items(self, levels: tuple[str, ...], event: pb.StateValues) -> Iterator[Item]:
        if not self._shows_state(levels, event):
            return
        state = snapshots.values_of(self._root.find_graph(levels), event.values)
        self._values[levels] = state
        self._messages.mark_seen(state)
        if "values" in self._modes and self._is_news(levels, state):
            yield Item("values", levels, self._select_keys(levels, state))

    def _is_news(self, levels: tuple[str, ...], state: Any) -> bool:
        """With chosen keys a state is shown only when one of them was written."""
        if levels or self._keys is None or not isinstance(state, dict):
            return True
        keys = {self._keys} if isinstance(self._keys, str) else set(self._keys)
        before, self._last_shown = self._last_shown, {k: state[k] for k in keys if k in state}
        written, self._touched = self._touched, set()
        return bool(written & keys) or (self._last_shown != before and bool(self._last_shown))

    def _select_keys(self, levels: tuple[str, ...], state: Any) -> Any:
        if levels or self._keys is None or not isinstance(state, dict):
            return state
        if isinstance(self._keys, str):
            return state.get(self._keys)
        return {k: state[k] for k in self._keys if k in state}

    def _update_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        node, value = public_name(event.node), self._read_update(levels, event.update)
        self._trace.record_update(event, value)
        for part in value if isinstance(value, list) else [value]:
            if not levels and isinstance(part, dict):
                self._touched.update(part)
        if "messages" in self._modes and not event.update.cached:
            yield from (Item("messages", levels, m) for m in self._messages.returned_messages(event, value))
        if "updates" not in self._modes:
            return
        shown = self._select_update(levels, value)
        data = {node: shown}
        if event.update.cached:
            data["__metadata__"] = {"cached": True}
        yield Item("updates", levels, data)

    def _read_update(self, levels: tuple[str, ...], update: pb.NodeUpdate) -> Any:
        program, value = self._root.find_graph(levels), codec.value_of(update.values)
        if program is None or program.is_root:
            return value
        return [program.decode_state(v) for v in value] if isinstance(value, list) else program.decode_state(value)

    def _select_update(self, levels: tuple[str, ...], value: Any) -> Any:
        if levels or self._keys is None or not isinstance(value, dict):
            return value
        if isinstance(self._keys, str):
            return value.get(self._keys)
        return {k: v for k, v in value.items() if k in self._keys} or None

    def _interrupt_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
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
            yield from self._question_items(levels, tuple(snapshots.to_interrupt(i) for i in group))

    def _question_items(self, levels: tuple[str, ...], asked: tuple[Any, ...]) -> Iterator[Item]:
        # A question shows up where it was asked and in every graph around it.
        for depth in range(len(levels) if self._subgraphs else 0, -1, -1):
            where = levels[:depth]
            if "updates" in self._modes:
                yield Item("updates", where, {INTERRUPT: asked})
            if "values" in self._modes:
                yield Item("values", where, self._add_questions(where, asked), asked)

    @property
    def wants_final(self) -> bool:
        """Only the state at the end is of interest."""
        return FINAL in self._modes

    def final_item(self, state: Any, questions: Iterable[Any]) -> Item:
        """The state at the end of a call, with what is open then."""
        asked = tuple(snapshots.to_interrupt(i) for i in questions if snapshots.is_question(i))
        return Item(FINAL, (), self._select_keys((), state), asked)

    def has_raised(self, identifiers: Iterable[str]) -> bool:
        """All these questions were shown by this call."""
        return self._raised.issuperset(identifiers)

    def open_question_items(self, interrupts: Iterable[Any]) -> Iterator[Item]:
        """Shows the questions that wait since an earlier call, if they do."""
        waiting = list(interrupts)
        yield from self._trace.question_items(waiting)
        for one in waiting:
            if one.interrupt_id not in self._raised and snapshots.is_question(one):
                yield from self._question_items(public_levels(one.checkpoint.namespace), (snapshots.to_interrupt(one),))

    def _add_questions(self, levels: tuple[str, ...], asked: tuple[Any, ...]) -> Any:
        if levels not in self._values:
            self._values[levels] = self._read_state(levels)
        state = self._select_keys(levels, self._values[levels])
        return {**state, INTERRUPT: asked} if isinstance(state, dict) else {INTERRUPT: asked}
