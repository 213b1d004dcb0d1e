"""Makes up a script while LangGraph plays it, and writes down what it shows."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from oracle.releases import find_release, installed_version
from tests.conformance import plain_data
from tests.conformance.library import Library
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Player

MODES = ["updates", "values", "custom"]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_THREAD = {"configurable": {"thread_id": "1"}}


class Recorder:
    """Plays a case on LangGraph with steps of its own choice."""

    def __init__(self, case: dict[str, Any], seed: int) -> None:
        self.case, self.r = case, random.Random(seed * 7919 + 1)
        self.release = find_release(installed_version())
        library = Library("langgraph")
        self.world, self.saver = World(library), library.InMemorySaver()
        compile_all(self.world, case, self.saver)
        self.player = Player(case, self.world, self.saver)
        self.graph = self.world.graphs["g"]
        self.symbols: dict[str, str] = {}
        self.questions: dict[tuple[str, str], str] = {}
        self.last_error: BaseException | None = None
        self.loose = False  # an update that LangGraph loses when something else is written

    def record(self) -> dict[str, Any]:
        """The case with its steps."""
        self._run({"log": ["in"], "n": 0, "m": {}})
        for _ in range(self.r.randint(2, 6)):
            if not self._next():
                break
        self._state()
        self._history()
        return self.case

    def _next(self) -> bool:
        state = self.graph.get_state(_THREAD)
        open_questions = self._open(state)
        if self.last_error is not None or (state.next and not open_questions):
            if self.last_error is None and self.r.random() < 0.3:
                self._update(self.r.choice(list(self.world.graphs["g"].builder.nodes)))
            self._run(None)
        elif open_questions:
            self._state()
            self._answer(open_questions)
        else:
            self._state()
            self._after_end()
        return True

    def _open(self, state: Any) -> list[tuple[str, Any]]:
        return [(i.id, i.value) for t in state.tasks if t.result in (None, {}) for i in t.interrupts]

    def _answer(self, waiting: list[tuple[str, Any]]) -> None:
        # LangGraph keeps a plain answer on the checkpoint and gives it to later
        # questions as well, where one superstep asks several times.
        asks_again = len(self.case["graphs"]) > 1 or "y=interrupt" in json.dumps(self.case["graphs"])
        if len(waiting) == 1 and not asks_again and self.r.random() < 0.5:
            self._run({"$command": {"resume": f"ans{self.r.randint(0, 9)}"}})
            return
        answers = {self._question(i, v): f"ans{self.r.randint(0, 9)}" for i, v in waiting}
        self._run({"$command": {"resume": answers}})

    def _after_end(self) -> None:
        choice = self.r.random()
        if choice < 0.4 or self.loose:
            self._run({"log": ["again"]})
            self.loose = False
        elif choice < 0.6:
            self._update(self.r.choice(list(self.case["graphs"][-1]["nodes"])))
            self._run(None)
        elif choice < 0.8 and len(self.case["graphs"]) == 1:
            history = list(self.graph.get_state_history(_THREAD))
            at = self.r.randrange(len(history))
            # graphd asks an answered question anew when its checkpoint is replayed.
            answered = history[at].metadata["source"] != "loop" and history[at].interrupts
            if history[at].next != ("__start__",) and not answered:
                self._run(None, at=history[at].config["configurable"]["checkpoint_id"], index=at)
        else:
            self.loose = self.r.random() < 0.5
            self._run({"$command": {"update": {"log": ["cmd"]}}} if self.loose else None)

    # Steps.

    def _run(self, given: Any, *, at: str | None = None, index: int = 0) -> None:
        subgraphs = len(self.case["graphs"]) > 1 and self.r.random() < 0.5
        do: dict[str, Any] = {"op": "stream", "input": given, "mode": MODES, "thread": "1"}
        if subgraphs:
            do["subgraphs"] = True
        if at is not None:
            symbol = self._symbol("cp", at)
            do |= {"at_checkpoint": symbol, "bind": {symbol: {"thread": "1", "history_index": index}}}
        self.player.known = {s: real for real, s in self.symbols.items()} | {
            s: real for (real, _), s in self.questions.items()
        }
        events, error = self.player._run({k: v for k, v in do.items() if k != "bind"})
        self.last_error = error
        expect: dict[str, Any] = {"events": self._translated(events), "groups": groups(events, subgraphs)}
        if error is not None:
            # How far the siblings of the failing node got is a matter of timing.
            expect["error"] = {"type": type(error).__name__}
            expect["until"] = "last values"
        self.case["steps"].append({"do": do, "expect": expect})

    def _update(self, node: str) -> None:
        do = {"op": "update_state", "thread": "1", "values": {"log": ["edit"]}, "as_node": node}
        config = self.graph.update_state(_THREAD, do["values"], node)
        new = self._symbol("cp", config["configurable"]["checkpoint_id"])
        self.case["steps"].append({"do": do, "expect": {"new_checkpoint": new}})
        self._state()

    def _state(self) -> None:
        state = self.graph.get_state(_THREAD)
        if self.last_error is not None or self._is_forgotten(state):
            return
        shown = self._snapshot(state)
        if self.release.lists_answered:
            done = [i for task in shown["tasks"] if "result" in task for i in task.pop("interrupts", [])]
            shown["interrupts"] = [i for i in shown.get("interrupts", []) if i not in done]
        self.case["steps"].append({"do": {"op": "get_state", "thread": "1"}, "expect": {"snapshot": shown}})

    def _history(self) -> None:
        if self.last_error is not None:
            return
        states = list(self.graph.get_state_history(_THREAD))
        if self._is_forgotten(states[0]):
            return
        rows = [self._snapshot(s) for s in states]
        do = {"op": "get_state_history", "thread": "1"}
        self.case["steps"].append({"do": do, "expect": {"history": rows}})

    def _is_forgotten(self, state: Any) -> bool:
        forgets = self.release.forgets_second_question
        return forgets and any(t.interrupts and t.result == {} for t in state.tasks)

    # Ids as symbols.

    def _snapshot(self, state: Any) -> Any:
        shown = plain_data.snapshot(state)
        for field in ("checkpoint", "parent"):
            if shown[field] is not None:
                shown[field] = self._symbol("cp", shown[field])
        return self._translated(shown)

    def _symbol(self, kind: str, real: str) -> str:
        return self.symbols.setdefault(real, f"{kind}{len(self.symbols) + 1}")

    def _question(self, real: str, value: Any) -> str:
        key = (real, json.dumps(value, sort_keys=True))
        return self.questions.setdefault(key, f"int{len(self.questions) + 1}")

    def _translated(self, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"value", "id"}:
            return {"value": value["value"], "id": self._question(value["id"], value["value"])}
        if isinstance(value, dict):
            return {self._translated(k): self._translated(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._translated(v) for v in value]
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._symbol("t", found.group()), value)
        return value


def groups(events: list[Any], subgraphs: bool) -> list[int]:
    """Sizes of runs of events whose order means nothing."""
    sizes: list[int] = []
    separate = True
    for event in events:
        namespace, mode, data = event if subgraphs else ([], *event)
        alone = mode == "values" and not namespace and not (isinstance(data, dict) and "__interrupt__" in data)
        if alone or separate:
            sizes.append(1)
        else:
            sizes[-1] += 1
        separate = alone
    return sizes
