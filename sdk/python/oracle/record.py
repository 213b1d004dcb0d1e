"""Plays the turns of a case on LangGraph, and writes down as steps what it shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from oracle.events import format_event, group_events, listen
from oracle.on_purpose import OnPurpose
from oracle.releases import find_release, installed_version
from oracle.symbols import Symbols
from tests.conformance import plain_data
from tests.conformance.library import Library
from tests.conformance.matching import ANYTHING
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Player

Turn = dict[str, Any]

# The size of a state at which a script ends: one run of 25 supersteps multiplies it by some thousands at most.
MOST_ITEMS = 500


class Recorder:
    """Plays a case on LangGraph; what a turn does depends on what it finds."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.release = find_release(installed_version())
        library = Library("langgraph")
        self.world, self.saver = World(library), library.InMemorySaver()
        compile_all(self.world, case, self.saver)
        self.player = Player(case, self.world, self.saver)
        self.graph = self.world.graphs["g"]
        self.symbols, self.on_purpose = Symbols(), OnPurpose(case)
        self.errors: dict[str, BaseException | None] = {}
        self.played: set[str] = set()
        self.answered: set[str] = set()
        self.answering: set[str] = set()  # of these, by the call that is under way
        self.situation = "new"

    def record(self) -> dict[str, Any]:
        """The case with its steps."""
        try:
            for turn in self.case["turns"]:
                if not self._is_unreadable(turn["thread"]) and not self._is_large(turn["thread"]):
                    self._play_turn(turn)
                    self._read_state(turn)
            for thread in self.errors:
                self._read_history(thread)
        except Exception as error:
            if not self.on_purpose.ends_comparison(error):
                raise
        return self.case

    def _play_turn(self, turn: Turn) -> None:
        if turn["thread"] not in self.errors:
            self.situation = "new"
            self._run(turn, turn["first"])
            return
        self.situation = situation = self._situation(turn["thread"])
        state = self._state(turn["thread"])
        act = self.on_purpose.replacement_of(
            situation,
            turn,
            state,
            self._checkpoint_of(turn["thread"]),
            len(self._open(state)),
            kept_ended=self._kept_ended(turn["thread"]),
        )
        self.played.add(f"{act} on a thread that is {situation}")
        play: Callable[[Turn], None] = getattr(self, "_act_" + act.replace(" ", "_"))
        play(turn)

    def _situation(self, thread: str) -> str:
        state = self._state(thread)
        if self.errors[thread] is not None:
            return "failed"
        if self._open(state):
            return "asked"
        return "paused" if state.next else "ended"

    def _kept_ended(self, thread: str) -> bool:
        """Whether a graph that persists stands at its end, or was left with a command for the graph around it."""
        is_left = "graph=PARENT" in json.dumps(self.case["graphs"])
        for namespace in self.saver.storage[thread]:
            if namespace and ":" not in namespace:
                place = {"thread_id": thread, "checkpoint_ns": namespace}
                found = self.saver.get_tuple({"configurable": place})
                values = found.checkpoint["channel_values"] if found is not None else {"__start__": None}
                if is_left or not any(key.startswith(("branch:to:", "join:", "__")) for key in values):
                    return True
        return False

    def _is_unreadable(self, thread: str) -> bool:
        """LangGraph can't read the state of a thread any more whose superstep it has refused."""
        error = self.errors.get(thread)
        return error is not None and self.on_purpose.ends_comparison(error)

    def _is_large(self, thread: str) -> bool:
        """Whether the state has grown so far that a loop through subgraphs, which multiplies it, fills the memory."""
        values = self._state(thread).values if thread in self.errors else {}
        return sum(len(v) for v in values.values() if isinstance(v, (list, str, dict))) > MOST_ITEMS

    def _state(self, thread: str, **options: Any) -> Any:
        return self.graph.get_state({"configurable": {"thread_id": thread}}, **options)

    def _open(self, state: Any) -> list[tuple[str, Any]]:
        return [(i.id, i.value) for i in state.interrupts if i.id not in self.answered]

    # What a turn may do.

    def _act_input(self, turn: Turn) -> None:
        self._run(turn, turn["later"])

    def _act_go_on(self, turn: Turn) -> None:
        self._run(turn, None)

    def _act_answer(self, turn: Turn) -> None:
        self._answer(turn, self._open(self._state(turn["thread"])))

    def _act_answer_some(self, turn: Turn) -> None:
        waiting = self._open(self._state(turn["thread"]))
        self._answer(turn, waiting[: 1 + int(turn["at"] * (len(waiting) - 1))])

    def _act_answer_by_value(self, turn: Turn) -> None:
        self._note_answers(self._open(self._state(turn["thread"])))
        self._run(turn, {"$command": {"resume": turn["answers"][0]}})

    def _act_answer_plainly(self, turn: Turn) -> None:
        waiting = self._open(self._state(turn["thread"]))
        # LangGraph keeps a plain answer on the checkpoint and gives it to later
        # questions as well, where one superstep asks several times.
        asks_again = len(self.case["graphs"]) > 1 or "y=interrupt" in json.dumps(self.case["graphs"])
        if len(waiting) == 1 and not asks_again:
            self._act_answer_by_value(turn)
        else:
            self._answer(turn, waiting)

    def _answer(self, turn: Turn, waiting: list[tuple[str, Any]]) -> None:
        self._record_state(turn["thread"])  # or the player does not know the ids
        self._note_answers(waiting)
        answers = {self.symbols.question(i, v): a for (i, v), a in zip(waiting, turn["answers"], strict=False)}
        self._run(turn, {"$command": {"resume": answers}})

    def _note_answers(self, waiting: list[tuple[str, Any]]) -> None:
        self.answering = {i for i, _ in waiting}
        self.answered |= self.answering

    def _act_resume(self, turn: Turn) -> None:
        self._run(turn, {"$command": {"resume": "nobody asked"}})

    def _act_command(self, turn: Turn) -> None:
        self._run(turn, {"$command": {"update": turn["update"]}})

    def _act_goto(self, turn: Turn) -> None:
        self._run(turn, {"$command": {"goto": turn["target"]}})

    def _act_send(self, turn: Turn) -> None:
        send = {"$send": [turn["target"], {"log": ["sent"], "n": 50, "m": {}}]}
        self._run(turn, {"$command": {"goto": [send]}})

    def _act_update(self, turn: Turn) -> None:
        self._update(turn, {"configurable": {"thread_id": turn["thread"]}})
        self._run(turn, None)

    def _act_replay(self, turn: Turn) -> None:
        place = self._past(turn)
        if place is not None and self.on_purpose.replays(self.graph.get_state(place[0]), turn["options"]):
            self._run(turn, None, place)

    def _act_fork(self, turn: Turn) -> None:
        if (place := self._past(turn)) is not None:
            self._update(turn, place[0], place[1])
            self._run(turn, None)

    def _act_input_to_the_past(self, turn: Turn) -> None:
        if (place := self._past(turn)) is not None:
            self._run(turn, turn["later"], place)

    def _act_command_to_the_past(self, turn: Turn) -> None:
        self._command_past(turn, {"update": turn["update"]})

    def _act_goto_to_the_past(self, turn: Turn) -> None:
        self._command_past(turn, {"goto": turn["target"]})

    def _command_past(self, turn: Turn, command: dict[str, Any]) -> None:
        if (place := self._past(turn)) is None:
            return
        due = {*self.graph.get_state(place[0]).next, *([command["goto"]] if "goto" in command else [])}
        if self.on_purpose.takes_command(place[1]["at_checkpoint"], due):
            self._run(turn, {"$command": command}, place)

    def _act_child(self, turn: Turn) -> None:
        kept = self.case["graphs"][0]["compile"]["checkpointer"] == "persist" and len(self.case["graphs"]) == 2
        for name, code in self.case["graphs"][-1]["nodes"].items():
            if kept and code.startswith("<subgraph") and self.on_purpose.has_child_history(turn["thread"]):
                self._read_history(turn["thread"], name)

    def _past(self, turn: Turn) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The config of an older checkpoint, and how a step names it; None where history can't be compared."""
        if not self.on_purpose.has_history(turn["thread"]):
            return None
        config = {"configurable": {"thread_id": turn["thread"]}}
        history = list(self.graph.get_state_history(config))
        at = int(turn["at"] * len(history))
        found = history[at].config
        symbol = self.symbols.symbol("cp", found["configurable"]["checkpoint_id"])
        bind = {symbol: {"thread": turn["thread"], "history_index": at}}
        return found, {"at_checkpoint": symbol, "bind": bind}

    # Steps.

    def _run(self, turn: Turn, given: Any, place: tuple[Any, dict[str, Any]] | None = None) -> None:
        do: dict[str, Any] = {"op": "stream", "input": given, "thread": turn["thread"], **turn["options"]}
        if self.on_purpose.ignores_durability():
            do.pop("durability", None)
        if not self.on_purpose.reads_subgraphs():
            do.pop("subgraphs", None)
        if place is not None:
            do |= place[1]
        checkpoint = self._checkpoint_of(turn["thread"])
        answered = {symbol for symbol, real in self.symbols.known().items() if real in self.answered - self.answering}
        self.answering = set()
        self.player.known = self.symbols.known()
        events, shown, error = listen(self.player, do)
        hidden = self.on_purpose.hidden_updates(events)
        shown = [is_shown and place not in hidden for place, is_shown in enumerate(shown)]
        self.on_purpose.record_command(
            given, checkpoint, turn["thread"], turn["options"], ended=self.situation == "ended"
        )
        self.errors[turn["thread"]] = error
        if error is not None and self.on_purpose.fails_at_pause(error, events):
            return
        visible = [format_event(do, e) for e, s in zip(events, shown, strict=True) if s]
        groups = group_events(events, shown)
        told = self.on_purpose.adapt_events(self.symbols.translate(visible), turn["options"], turn["thread"], answered)
        expect: dict[str, Any] = {"events": told, "groups": groups}
        if error is not None:
            # How far the siblings of the failing node got is a matter of timing.
            last = groups.pop() if groups else 0
            expect["events"] = expect["events"][: len(visible) - last]
            expect |= {"error": {"type": type(error).__name__}, "until": "failure"}
        self.case["steps"].append({"do": do, "expect": expect})
        if not self._is_unreadable(turn["thread"]):
            end = self._situation(turn["thread"])
            self.on_purpose.record_end(turn["options"], turn["thread"], self.situation, end)

    def _update(self, turn: Turn, config: dict[str, Any], place: dict[str, Any] | None = None) -> None:
        do: dict[str, Any] = {"op": "update_state", "thread": turn["thread"], "values": turn["update"]}
        do |= place or {}
        if (writer := self.on_purpose.writer_of(turn["as_node"])) is not None:
            do["as_node"] = writer
        expect: dict[str, Any] = {}
        try:
            written = self.graph.update_state(config, do["values"], do.get("as_node"))
            expect["new_checkpoint"] = self.symbols.symbol("cp", written["configurable"]["checkpoint_id"])
        except Exception as error:
            expect["error"] = {"type": type(error).__name__}
        self.case["steps"].append({"do": do, "expect": expect})

    def _read_state(self, turn: Turn) -> None:
        if turn["state"] == "none" or self.errors[turn["thread"]] is not None:
            return
        self._record_state(turn["thread"], subgraphs=turn["state"] == "subgraphs" and self.on_purpose.reads_subgraphs())

    def _record_state(self, thread: str, *, subgraphs: bool = False) -> None:
        do: dict[str, Any] = {"op": "get_state", "thread": thread} | ({"subgraphs": True} if subgraphs else {})
        state = self._state(thread, subgraphs=subgraphs)
        self.case["steps"].append({"do": do, "expect": {"snapshot": self._snapshot(state, thread, live=True)}})

    def _read_history(self, thread: str, namespace: str = "") -> None:
        do: dict[str, Any] = {"op": "get_state_history", "thread": thread}
        if namespace:
            do["checkpoint_ns"] = namespace
        if self.errors[thread] is not None or not self.on_purpose.has_history(thread):
            return
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
        rows = [self._snapshot(s, thread) for s in self.graph.get_state_history(config)]
        self.case["steps"].append({"do": do, "expect": {"history": rows}})

    def _checkpoint_of(self, thread: str) -> str:
        found = self._state(thread).config["configurable"].get("checkpoint_id")
        return self.symbols.symbol("cp", found) if found else ""

    def _snapshot(self, state: Any, thread: str, *, live: bool = False) -> Any:
        shown = plain_data.snapshot(state)
        for field in ("checkpoint", "parent"):
            if shown[field] is not None:
                shown[field] = self.symbols.symbol("cp", shown[field])
        if any(i.id in self.answered for i in state.interrupts) and live:
            self.on_purpose.forget_questions(shown, self.answered)
        failed = [task for task in shown["tasks"] if "error" in task]
        for task in failed:  # the texts of some name pages of LangGraph; of several the first one ends the others
            task["error"] = task["error"].partition("(")[0] if len(failed) == 1 else ANYTHING
        if any(task.get("error") == "GraphRecursionError" for task in failed):
            # A graph inside ends at once at its limit; whether another task ends before it is chance.
            for task in shown["tasks"]:
                task |= {} if "error" in task else {"error": ANYTHING, "result": ANYTHING}
        return self.on_purpose.adapt_snapshot(self.symbols.translate(shown), thread, live=live)
