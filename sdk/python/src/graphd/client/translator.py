"""Events of the server as the items of LangGraph's streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2 as pb
from graphd.client import snapshots
from graphd.client.called_task import CalledTask
from graphd.client.items import FINAL, Item, select_keys
from graphd.client.message_stream import MessageStream
from graphd.client.omitted_values import warn_omitted
from graphd.client.shown_questions import Group, ShownQuestions
from graphd.client.trace import Trace
from graphd.constants import INTERRUPT, TASK_EVENT
from graphd.declare.graph_shape import GraphShape
from graphd.names import find_levels, public_levels, public_name
from graphd.runtime.local_runs import LocalRun
from graphd.values.state import PregelTask

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
        root: GraphShape,
        config: Mapping[str, Any],
        output_keys: str | Sequence[str] | None,
        read_state: ReadState,
        *,
        subgraphs: bool,
        stored: bool = True,
        continues: bool = False,
        local: LocalRun | None = None,
        folds: bool = False,
        called: bool = False,
    ) -> None:
        self._modes = set(modes)
        self._root = root
        self._keys_of = partial(_find_keys, root, output_keys)
        self._trace = Trace(
            modes,
            config,
            self._root.find_graph,
            self._keys_of,
            stored=stored,
            local=local,
            folds=folds,
            subgraphs=subgraphs,
        )
        self._read_state = read_state
        self._stored: set[tuple[str, ...]] = set()  # graphs whose states are in checkpoints
        self._asking: set[tuple[str, ...]] = set()  # graphs inside of others that have come to questions
        self._shown: dict[tuple[str, ...], None] = {}  # the graphs of the events so far
        self._values: dict[tuple[str, ...], Any] = {}
        self._steps: dict[tuple[str, ...], int] = {}  # of the states in _values
        self._messages = MessageStream(config, self._root.find_graph)
        self._questions = ShownQuestions(subgraphs=subgraphs)
        self._touched: dict[tuple[str, ...], set[str]] = {}
        self._last_shown: dict[tuple[str, ...], Any] = {}
        self._input_keys: set[str] | None = None
        self._held: list[Item] = []
        self._begun: dict[tuple[str, ...], Any] = {}  # states in which supersteps began that are shown in part
        self._called = called
        # Entrypoints that have returned since their values were shown; a run that goes on shows them first.
        self._returned: set[tuple[str, ...]] = {()} if continues else set()

    def translate_event(self, event: pb.Event) -> Iterator[Item]:
        """The items that an event makes, and those that it shows to be complete.

        A state of the root without a checkpoint ends a call that waits: the questions
        that wait since an earlier call come before it.
        """
        items = list(self._event_items(event))
        if self._held and (items or _shows_progress(event)):
            yield from self.held_items()
        if event.HasField("values") and self._is_partial(public_levels(event.namespace), event.values):
            self._held = items
        else:
            yield from items

    def _event_items(self, event: pb.Event) -> Iterator[Item]:
        levels = public_levels(event.namespace)
        self._shown[levels] = None
        if event.value_omitted and self._skip_omitted(levels, event):
            return
        match event.WhichOneof("kind"):
            case "values":
                yield from self._state_items(levels, event)
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
                if event.custom.name == TASK_EVENT:
                    yield from self._called_task_items(levels, event)
                elif "custom" in self._modes:
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
            program = self._root.find_graph(levels)
            self._touched.setdefault(levels, set()).update(program.channels if program is not None else ())
        if is_shown and self._modes & _SHOWN_IN.get(kind, frozenset()):
            warn_omitted(event, _SHOWN_AS[kind])
        return kind in ("values", "update", "custom", "message")

    @property
    def wants_values(self) -> bool:
        """States are shown."""
        return "values" in self._modes

    def _is_partial(self, levels: tuple[str, ...], event: pb.StateValues) -> bool:
        """Whether a state is that of a superstep that is not over, at the end of a run that waits."""
        return not levels and not self._called and not event.HasField("checkpoint")

    def _shows_state(self, levels: tuple[str, ...], event: pb.StateValues) -> bool:
        """Whether a state shows; LangGraph shows the progress of a graph that waits for the root alone."""
        if event.HasField("checkpoint"):
            self._stored.add(levels)
            return True
        return not levels or levels not in self._stored | self._asking

    def _state_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        if not self._shows_state(levels, event.values):
            return
        state = snapshots.values_of(self._root.find_graph(levels), event.values.values)
        self._steps[levels] = event.step
        if self._is_partial(levels, event.values):
            self._begun.setdefault(levels, self._values.get(levels, state))
        else:
            self._begun.pop(levels, None)
        self._values[levels] = state
        self._messages.mark_seen(state)
        if "values" in self._modes and self._is_news(levels, state):
            yield Item("values", levels, self._select_keys(levels, state))

    def _is_news(self, levels: tuple[str, ...], state: Any) -> bool:
        """With chosen keys a state is shown only when one of them was written.

        That of an entrypoint is shown when it has returned.
        """
        program = self._root.find_graph(levels)
        if program is not None and program.function is not None:
            has_returned = levels in self._returned
            self._returned.discard(levels)
            return has_returned
        shown = self._keys_of(levels)
        if shown is None or not isinstance(state, dict):
            return True
        keys = {shown} if isinstance(shown, str) else set(shown)
        before = self._last_shown.get(levels)
        self._last_shown[levels] = now = {k: state[k] for k in keys if k in state}
        written = self._touched.pop(levels, set())
        if not levels and before is None and self._input_keys is not None:
            return bool(self._input_keys & keys)
        return bool(written & keys) or (now != before and bool(now))

    def _select_keys(self, levels: tuple[str, ...], state: Any) -> Any:
        return select_keys(state, self._keys_of(levels))

    def _update_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        node, value = public_name(event.node), self._read_update(levels, event.update)
        self._trace.record_update(event, value)
        self._returned.add(levels)
        self._last_shown.pop((*levels, node), None)  # a graph that persists begins anew when its node runs again
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                self._touched.setdefault(levels, set()).update(part)
        if "messages" in self._modes and not event.update.cached:
            yield from (Item("messages", levels, m) for m in self._messages.returned_messages(event, value))
        if "updates" not in self._modes:
            return
        shown = self._select_update(levels, value)
        data = {node: shown}
        if event.update.cached:
            data["__metadata__"] = {"cached": True}
        yield Item("updates", levels, data)

    def _called_task_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        told = CalledTask.of(event)
        shows_result = told.is_ended and not told.is_omitted
        if told.is_omitted and self._modes & _SHOWN_IN["update"]:
            told.warn_omitted()
        if shows_result and not told.is_cached and "messages" in self._modes:
            yield from (Item("messages", levels, m) for m in self._messages.task_messages(event, told))
        if shows_result and "updates" in self._modes:
            yield Item("updates", levels, told.build_update())
        yield from self._trace.called_task_items(levels, event, told)

    def _read_update(self, levels: tuple[str, ...], update: pb.NodeUpdate) -> Any:
        program, value = self._root.find_graph(levels), codec.value_of(update.values)
        if program is None or program.is_root:
            return value
        return [program.decode_state(v) for v in value] if isinstance(value, list) else program.decode_state(value)

    def _select_update(self, levels: tuple[str, ...], value: Any) -> Any:
        keys = self._keys_of(levels)
        if keys is None:
            return value
        if isinstance(value, list):
            parts = [shown for part in value if (shown := self._select_update(levels, part)) is not None]
            return parts if len(parts) > 1 else next(iter(parts), None)
        if not isinstance(value, dict):
            return value
        if isinstance(keys, str):
            return value.get(keys)
        return {k: v for k, v in value.items() if k in keys} or None

    def _interrupt_items(self, levels: tuple[str, ...], event: pb.Event) -> Iterator[Item]:
        if levels and any(snapshots.is_question(one) for one in event.interrupt.interrupts):
            self._asking.add(levels)
        self._forget_short_lived(levels, event.step)
        yield from self._question_items(self._questions.record_raised(levels, event.interrupt.interrupts))

    def _forget_short_lived(self, levels: tuple[str, ...], step: int) -> None:
        """Takes keys of one superstep out of a state since which supersteps have ended that wrote nothing."""
        program, state = self._root.find_graph(levels), self._values.get(levels)
        if program is None or not isinstance(state, dict) or step <= self._steps.get(levels, step) + 1:
            return
        self._values[levels] = {k: v for k, v in state.items() if k not in program.short_lived_keys}

    def _question_items(self, groups: Iterable[Group]) -> Iterator[Item]:
        for named, asked in groups:
            levels = find_levels(named, self._shown)
            if "updates" in self._modes:
                yield Item("updates", levels, {INTERRUPT: asked})
            if "values" in self._modes:
                yield Item("values", levels, self._add_questions(levels, asked), asked)

    def breakpoint_items(self, open_interrupts: Sequence[str]) -> Iterator[Item]:
        """Shows that a run has stopped at breakpoints; a question beside them shows in place of that."""
        if open_interrupts and "updates" in self._modes and not self._questions.has_asked(open_interrupts):
            yield Item("updates", (), {INTERRUPT: ()})

    @property
    def wants_progress(self) -> bool:
        """Tasks that go on are shown with what is known of them already."""
        return bool(self._modes & {"checkpoints", "debug", "tasks"})

    def set_input(self, keys: Iterable[str]) -> None:
        """Takes the keys of the input; without one a call goes on with a state, and shows it."""
        self._input_keys = set(keys)

    def set_progress(self, tasks: Iterable[PregelTask]) -> None:
        """Takes what is known of the tasks before the call."""
        self._trace.set_progress(tasks)

    def has_raised(self, identifiers: Iterable[str]) -> bool:
        """All these questions were shown by this call."""
        return self._questions.has_raised(identifiers)

    def open_question_items(self, interrupts: Iterable[Any]) -> Iterator[Item]:
        """Shows, at the end of a stream, the questions that wait since an earlier call, and new ones around theirs."""
        waiting = list(interrupts)
        yield from self._trace.open_question_items(waiting)
        groups = [(find_levels(named, self._shown), asked) for named, asked in self._questions.groups_at_end(waiting)]
        if "values" in self._modes:
            yield from self._waiting_states({levels for levels, _ in groups})
        yield from self._question_items(groups)

    def _waiting_states(self, asking: Iterable[tuple[str, ...]]) -> Iterator[Item]:
        """The states of graphs inside of others that wait since an earlier call: LangGraph runs them again, and shows
        with what they go on."""
        for levels in sorted(asking, key=len):
            if levels and levels not in self._values:
                yield Item("values", levels, self._read_shown(levels))

    def held_items(self) -> list[Item]:
        """The last state of a call that waits."""
        held, self._held = self._held, []
        return held

    def _add_questions(self, levels: tuple[str, ...], asked: tuple[Any, ...]) -> Any:
        state = self._read_shown(levels)
        return {**state, INTERRUPT: asked} if isinstance(state, dict) else {INTERRUPT: asked}

    def _read_shown(self, levels: tuple[str, ...]) -> Any:
        """What shows of the state with which the superstep of a graph began."""
        if levels not in self._values:
            self._values[levels] = self._read_state(levels)
        return self._select_keys(levels, self._begun.get(levels, self._values[levels]))


def build_final_item(keys: str | Sequence[str] | None, state: Any, questions: Iterable[Any]) -> Item:
    """The state at the end of a call, with what is open then."""
    asked = tuple(snapshots.to_interrupt(i) for i in questions if snapshots.is_question(i))
    return Item(FINAL, (), select_keys(state, keys), asked)


def _find_keys(
    root: GraphShape, chosen: str | Sequence[str] | None, levels: tuple[str, ...]
) -> str | Sequence[str] | None:
    """The keys of a graph that show, None for all: those of the call, or the output of a graph inside."""
    if not levels:
        return chosen
    program = root.find_graph(levels)
    return None if program is None else program.shown_keys


def _shows_progress(event: pb.Event) -> bool:
    """Whether the run goes on after the state that was shown last."""
    asks_inside = event.HasField("interrupt") and bool(event.namespace)
    return asks_inside or event.WhichOneof("kind") in ("checkpoint", "task", "update")
