"""Draws what a caller does with a graph, before it is known what the graph does.

A turn has an option for each situation that it may find: a thread that is new,
waits for answers, is paused at a breakpoint, has failed or has ended.
"""

from __future__ import annotations

import random
from typing import Any

from oracle.state_keys import draw_input

MODES = ["values", "updates", "custom", "tasks", "checkpoints", "debug"]
ENOUGH = 25
"""The recursion limit of most calls: a graph that loops for ever comes to an end."""

ACTS = {
    "asked": {"answer": 60, "answer some": 15, "answer plainly": 10, "update": 6, "input": 6, "goto": 3},
    "paused": {"go on": 55, "resume": 12, "update": 20, "input": 8, "command": 5},
    "failed": {"go on": 55, "update": 25, "input": 20},
    "ended": {
        "input": 22, "update": 16, "replay": 15, "fork": 11, "command": 7, "goto": 7, "send": 5, "go on": 4, "child": 6,
        "input to the past": 7, "command to the past": 4, "goto to the past": 4,
    },
}  # fmt: skip


def draw_turns(r: random.Random, graphs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turns of a case."""
    habits = _draw_options(r, graphs)
    second = r.random() < 0.15
    turns = [_draw_turn(r, graphs, habits, "1")]
    for _ in range(r.randint(2, 6)):
        turns.append(_draw_turn(r, graphs, habits, "2" if second and r.random() < 0.4 else "1"))
    return turns


def _draw_turn(r: random.Random, graphs: list[dict[str, Any]], habits: dict[str, Any], thread: str) -> dict[str, Any]:
    main = graphs[-1]
    options = habits if r.random() < 0.6 else _draw_options(r, graphs)
    turn: dict[str, Any] = {"thread": thread, "options": options}
    for situation, weights in ACTS.items():
        turn[situation] = r.choices(list(weights), list(weights.values()))[0]
    return turn | {
        "first": draw_input(r, main, True),
        "later": draw_input(r, main, False),
        "update": _draw_update(r, main),
        "as_node": _draw_writer(r, main, graphs),
        "target": r.choice(list(main["nodes"])),
        "at": r.random(),
        "answers": [f"ans{r.randint(0, 9)}" for _ in range(8)],
        "state": r.choices(["plain", "subgraphs", "none"], [5, 3, 2])[0],
    }


def _draw_update(r: random.Random, main: dict[str, Any]) -> dict[str, Any]:
    kind = r.random()
    if kind < 0.12:
        return {"log": {"__overwrite__": ["edit only"]}}
    rare = [key for key in main["state"] if key not in ("log", "n", "m")]
    if rare and kind < 0.5:
        key = r.choice(rare)
        return {"log": ["edit"], key: ["edit"] if key in "ts" else "edit"}
    return {"log": ["edit"]}


def _draw_writer(r: random.Random, main: dict[str, Any], graphs: list[dict[str, Any]]) -> str | None:
    kind = r.random()
    if kind < 0.8:
        return str(r.choice(list(main["nodes"])))
    if kind < 0.87:
        return None
    if kind < 0.92:
        return "__start__"
    if kind < 0.97:
        return "__end__"
    return r.choice(["__input__", "nobody"])


def _draw_options(r: random.Random, graphs: list[dict[str, Any]]) -> dict[str, Any]:
    """The arguments of a call of stream."""
    options: dict[str, Any] = {"mode": _draw_modes(r)}
    if r.random() < (0.5 if len(graphs) > 1 else 0.1):
        options["subgraphs"] = True
    if r.random() < 0.35:
        options["durability"] = r.choice(["sync", "async", "exit", "exit"])
    names = list(graphs[-1]["nodes"])
    if r.random() < 0.12:
        options[r.choice(["interrupt_before", "interrupt_after"])] = r.choice(["*", [r.choice(names)]])
    if r.random() < 0.06:
        options["output_keys"] = r.choice([["log"], ["log", "n"], "n"])
    if r.random() < 0.06:
        options["version"] = "v2"
    options["config"] = {"recursion_limit": r.randint(1, 4) if r.random() < 0.04 else ENOUGH}
    return options


def _draw_modes(r: random.Random) -> Any:
    kind = r.random()
    if kind < 0.3:
        return ["updates", "values", "custom"]
    if kind < 0.65:
        return r.choice(MODES)
    return r.sample(MODES, r.randint(1, 4))
