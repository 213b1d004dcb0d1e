"""Writes down what LangGraph shows for the steps of a case: how a recorded case is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from oracle.recorded import Case
from tests.conformance import plain_data
from tests.conformance.library import Library
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Player

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_QUESTION = re.compile(r"[0-9a-f]{32}")


_RECORDED = ("stream", "get_state", "get_state_history", "update_state", "bulk_update_state", "set_mem")


def record_case(case: Case) -> Case:
    """The case, with what LangGraph shows at each step in place of what it expected."""
    return Transcript(case).record()


def record_file(path: Path) -> list[str]:
    """Writes the cases of a file anew, but for those that differ on purpose; returns the ids of what changed."""
    before: list[Case] = json.loads(path.read_text())
    after = [case if case.get("differs") else record_case(case) for case in before]
    path.write_text(format_cases(after))
    return [str(old["id"]) for old, new in zip(before, after, strict=True) if old != new]


class Transcript:
    """Plays the steps of a case, and gives ids the names t1, cp1, int1 in order of their appearance."""

    def __init__(self, case: Case) -> None:
        self._case, self._names = case, dict[str, str]()
        library = Library("langgraph")
        self._world, saver = World(library), library.InMemorySaver()
        compile_all(self._world, case, saver)
        self._player = Player(case, self._world, saver)

    def record(self) -> Case:
        """The case with its expectations."""
        return self._case | {
            "steps": [self._perform(step["do"], step.get("expect", {})) for step in self._case["steps"]]
        }

    def _perform(self, do: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
        self._player.known = {name: real for real, name in self._names.items()}
        do = self._rename_bound(do)
        if do["op"] not in _RECORDED:
            raise ValueError(f"case {self._case['id']}: {do['op']} can't be recorded, only {', '.join(_RECORDED)}")
        expect = getattr(self, f"_{do['op']}")(do)
        if expect is None:
            return {"do": do}
        kept = {k: before[k] for k in ("groups", "ran_groups", "until") if k in before}
        return {"do": do, "expect": self._translate(expect) | kept}

    def _rename_bound(self, do: dict[str, Any]) -> dict[str, Any]:
        """The step, with the names that this transcript has for the checkpoints it binds."""
        names = {}
        for symbol, where in do.get("bind", {}).items():
            states = list(self._player._graph(do).get_state_history({"configurable": {"thread_id": where["thread"]}}))
            real = states[where["history_index"]].config["configurable"]["checkpoint_id"]
            self._player.known[name := self._name("cp", real)] = real
            names[symbol] = name
        if not names:
            return do
        bind = {names[symbol]: where for symbol, where in do["bind"].items()}
        return do | {"bind": bind, "at_checkpoint": names.get(do["at_checkpoint"], do["at_checkpoint"])}

    def _stream(self, do: dict[str, Any]) -> dict[str, Any]:
        events, error = self._player.run(do)
        shown: dict[str, Any] = {} if error is None else {"error": {"type": type(error).__name__}}
        return shown | {"events": events, "ran": [name for _, name in self._world.ran]}

    def _get_state(self, do: dict[str, Any]) -> dict[str, Any]:
        graph, config = self._player._graph(do), self._player._config(do)
        return {"snapshot": plain_data.snapshot(graph.get_state(config, subgraphs=do.get("subgraphs", False)))}

    def _get_state_history(self, do: dict[str, Any]) -> dict[str, Any]:
        states = self._player._graph(do).get_state_history(self._player._config(do))
        return {"history": [plain_data.snapshot(state) for state in states]}

    def _update_state(self, do: dict[str, Any]) -> dict[str, Any]:
        values = self._player._input(do["values"])
        config = self._player._graph(do).update_state(self._player._config(do), values, do.get("as_node"))
        return {"new_checkpoint": config["configurable"]["checkpoint_id"]}

    def _bulk_update_state(self, do: dict[str, Any]) -> dict[str, Any]:
        supersteps = [[self._world.library.StateUpdate(*u) for u in s] for s in do["supersteps"]]
        config = self._player._graph(do).bulk_update_state(self._player._config(do), supersteps)
        return {"new_checkpoint": config["configurable"]["checkpoint_id"]}

    def _set_mem(self, do: dict[str, Any]) -> None:
        self._player.do_set_mem(do, {})

    def _translate(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {self._translate(k): self._translate(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self._translate(v, key) for v in value]
        if not isinstance(value, str):
            return value
        if key == "timestamp":
            return "<ts>"
        if key == "id" and _QUESTION.fullmatch(value):
            return self._name("int", value)
        kind = "cp" if key in ("cp", "checkpoint", "parent", "new_checkpoint") else "t"
        return _UUID.sub(lambda found: self._name(kind, found.group()), value)

    def _name(self, kind: str, real: str) -> str:
        taken = sum(name.startswith(kind) and name[len(kind) :].isdecimal() for name in self._names.values())
        return self._names.setdefault(real, f"{kind}{taken + 1}")


def format_cases(cases: list[Case]) -> str:
    """Cases as the files have them: a line for each graph, step and expectation."""
    return "[\n" + ",\n".join(_format_case(case) for case in cases) + "\n]\n"


def _format_case(case: Case) -> str:
    head = {k: v for k, v in case.items() if k not in ("graphs", "steps")}
    lines = [f"    {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}," for k, v in head.items()]
    graphs = ",\n".join(f"      {json.dumps(g, ensure_ascii=False)}" for g in case["graphs"])
    steps = ",\n".join(_format_step(step) for step in case["steps"])
    return "  {\n" + "\n".join(lines) + f'\n    "graphs": [\n{graphs}\n    ],\n    "steps": [\n{steps}\n    ]\n  }}'


def _format_step(step: dict[str, Any]) -> str:
    parts = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in step.items()]
    return "      {" + ",\n       ".join(parts) + "}"
