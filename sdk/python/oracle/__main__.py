"""python -m oracle [--seeds N] [--first N] [--keep FILE]."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from graphd.checkpoint.memory import InMemorySaver
from oracle.graphs import random_case
from oracle.record import Recorder
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Mismatch, Player


def play(seed: int) -> tuple[dict[str, Any], str]:
    """The case of a seed, and how graphd differs from it; "" if it doesn't."""
    case = random_case(seed)
    try:
        Recorder(case, seed).record()
    except ValueError as refused:
        return case, "" if "Graph" in str(refused) else f"LangGraph: {refused!r}"
    world, saver = World(), InMemorySaver()
    try:
        compile_all(world, case, saver)
        Player(case, world, saver).play()
    except Mismatch as different:
        return case, str(different)
    except Exception as error:  # a crash of the comparison is a difference too
        return case, f"{type(error).__name__}: {error}"
    finally:
        for graph in world.graphs.values():
            graph.detach()
    return case, ""


def main() -> int:
    """Plays the seeds; 1 if any of them differs."""
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--keep", help="file for the cases that differ")
    given = parser.parse_args()
    different = []
    for seed in range(given.first, given.first + given.seeds):
        case, problem = play(seed)
        if problem:
            different.append(case)
            print(f"--- seed {seed}\n{json.dumps(case['graphs'])}\n{problem}", flush=True)
    if given.keep:
        with open(given.keep, "w") as file:
            json.dump(different, file, indent=1)
    print(f"{given.seeds} seeds, {len(different)} differ: {[c['id'] for c in different]}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
