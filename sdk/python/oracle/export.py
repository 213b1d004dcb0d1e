"""Writes down cases for another SDK: what LangGraph shows of random graphs, and their code in JavaScript."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from oracle.cases import random_case
from oracle.javascript import bodies_of
from oracle.record import Recorder

Case = dict[str, Any]


def export_cases(seeds: list[int], file: Path) -> int:
    """Writes the cases of the seeds that LangGraph takes; returns how many."""
    cases: list[Case] = []
    for played, seed in enumerate(seeds, 1):
        if (case := _record(seed)) is not None:
            cases.append(case)
        if played % 100 == 0 or played == len(seeds):
            print(f"{played} of {len(seeds)} seeds recorded", file=sys.stderr, flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cases))
    return len(cases)


def _record(seed: int) -> Case | None:
    case = random_case(seed)
    for turn in case["turns"]:
        turn["options"] = _show_alike(turn["options"], nested=len(case["graphs"]) > 1)
    try:
        Recorder(case).record()
    except ValueError as refused:
        if "Graph" not in str(refused):
            raise
        return None
    return {"id": case["id"], "title": "", "bodies": bodies_of(case["graphs"])} | {
        field: case[field] for field in ("graphs", "steps")
    }


def _show_alike(options: dict[str, Any], *, nested: bool) -> dict[str, Any]:
    """The options with which the streams of both languages tell the same.

    LangGraph.js has no version v2, tells a breakpoint in values too, which the updates show, and tells what subgraphs
    write with their streams in any case.
    """
    given = [options["mode"]] if isinstance(options["mode"], str) else options["mode"]
    modes = [mode for mode in given if mode != "custom" or not nested]
    if "updates" not in modes and ("values" in modes or not modes):
        modes = [*modes, "updates"]
    return {key: value for key, value in options.items() if key != "version"} | {"mode": modes}
