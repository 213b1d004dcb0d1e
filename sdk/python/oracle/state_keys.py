"""Draws the keys of a state, and the schemas that show parts of it."""

from __future__ import annotations

import random
from typing import Any

PLAIN = {"log": "list+", "n": "int+", "m": "merge"}
"""The keys of every graph."""

RARE = {"v": "last", "x": "any", "y": "ephemeral", "u": "untracked", "t": "topic", "s": "topic+"}
"""Keys that only some graphs have, each of another kind. No node has such a name: LangGraph.js refuses that."""

PRIVATE = "p"
"""A key of a node's own input, in no schema of the graph."""

ONLY_INPUT = "i"
"""A key of the input schema alone."""


def draw_state(r: random.Random) -> dict[str, str]:
    """The keys of a graph with their kinds."""
    rare = r.sample(list(RARE), r.randint(1, 3)) if r.random() < 0.5 else []
    return PLAIN | {key: RARE[key] for key in sorted(rare)}


def draw_schemas(r: random.Random, state: dict[str, str], nodes: list[str]) -> dict[str, Any]:
    """Schemas of the input, the output and single nodes, as fields of a graph."""
    found: dict[str, Any] = {}
    rare = [key for key in state if key not in PLAIN]
    if r.random() < 0.2:
        found["input_schema"] = ["log", "n", *r.choice([[], ["m"], [ONLY_INPUT]]), *rare[:1]]
    if r.random() < 0.25:
        found["output_schema"] = r.choice([["log"], ["log", "m"], ["n"], ["log", *rare]])
    if nodes and r.random() < 0.25:
        reader = r.choice(nodes)
        found["node_input_schema"] = {reader: ["log", PRIVATE, *rare[:1]]}
    return found


def draw_input(r: random.Random, graph: dict[str, Any], first: bool) -> dict[str, Any]:
    """An input for a graph: of a new thread with all plain keys, later with some."""
    given: dict[str, Any] = {"log": ["in"], "n": 0, "m": {}} if first else {"log": ["again"]}
    keys = [key for key in graph["state"] if key in RARE]
    if ONLY_INPUT in graph.get("input_schema", []):
        keys.append(ONLY_INPUT)
    for key in keys:
        if r.random() < 0.4:
            given[key] = [f"{key} in"] if key in "ts" else f"{key} in"
    return given
