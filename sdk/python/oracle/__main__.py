"""Plays the recorded cases on LangGraph, and random graphs on LangGraph and on graphd, and compares what they show.

A seed always makes the same graphs and the same script: `python -m oracle --first 558 --seeds 1` plays the one
with number 558 again. A difference that is put right becomes a case of tests/conformance/cases/P.json; --keep
writes the differing ones in that form. --coverage plays nothing: it counts how many seeds draw each feature.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from graphd._gen.v1 import registry_service_pb2 as rs
from graphd.checkpoint.memory import InMemorySaver
from graphd.errors import GraphdError
from graphd.transport.server import call_unary, server_at
from oracle.cases import random_case
from oracle.coverage import count_features, report
from oracle.export import export_cases
from oracle.record import Recorder
from oracle.recorded import check_case, read_cases
from oracle.releases import ANCHOR, find_release, installed_version
from oracle.transcript import record_file
from tests.conformance.program import World, compile_all
from tests.conformance.steps import Mismatch, Player

_RECORDINGS = 4  # of a seed that differs: LangGraph may tell of the same program what it did not tell before

_RACES = "graphd differs from itself"


def play(seed: int, met: Counter[str]) -> tuple[dict[str, Any], str]:
    """The case of a seed, and how graphd differs from it; "" if it doesn't. Counts acts and decisions that it met.

    Both run the nodes of a superstep side by side, and on a busy machine what is shown of one that is interrupted, or
    cut off by the failure of a sibling, may depend on which of them was faster. So a case that differs is recorded and
    played again. graphd may do as any of the recordings, and may differ in the first play alone. `play_all` bounds how
    many cases do that.
    """
    case, problem = _play_once(seed, met)
    differ_again = False
    for _ in range(1, _RECORDINGS if problem else 1):
        again, other = _play_once(seed, Counter())
        if not other and again.get("steps") != case.get("steps"):
            met["LangGraph differs from itself"] += 1
            return again, ""
        differ_again = differ_again or bool(other)
    if problem and not differ_again:
        met[_RACES] += 1
        print(f"--- seed {seed}, in one of {_RECORDINGS} plays\n{problem}", flush=True)
        return case, ""
    return case, problem


def _play_once(seed: int, met: Counter[str]) -> tuple[dict[str, Any], str]:
    case = random_case(seed)
    try:
        recorder = Recorder(case)
        recorder.record()
        met.update(recorder.played | {f"on purpose: {name}" for name in recorder.on_purpose.met})
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
        _remove(case, world, saver)
    return case, ""


def _remove(case: dict[str, Any], world: World, saver: InMemorySaver) -> None:
    """Removes what a case leaves: a server has a limit of graphs, and keeps its threads in memory."""
    for thread in {turn["thread"] for turn in case["turns"]}:
        with contextlib.suppress(GraphdError):  # it was never made
            saver.delete_thread(thread)
    registry = server_at(saver.address).stubs.registry
    for graph in world.graphs.values():
        graph.detach()
        with contextlib.suppress(GraphdError):  # it has never been attached
            call_unary(registry.DeleteGraph, rs.DeleteGraphRequest(graph=graph.name, force=True))


def check_recorded() -> list[str]:
    """The recorded cases that LangGraph plays otherwise than they say."""
    release, wrong, cases = find_release(installed_version()), [], list(read_cases())
    for case in cases:
        if problem := check_case(case, release):
            wrong.append(str(case["id"]))
            print(f"--- case {case['id']}\n{problem}", flush=True)
    print(f"{len(cases)} recorded cases, {len(wrong)} differ" + "".join(f" {name}" for name in wrong), flush=True)
    return wrong


def play_all(seeds: range, keep: str | None) -> int:
    """Plays the recorded cases, and the seeds; 1 if any of them differs."""
    wrong = check_recorded()
    different: list[dict[str, Any]] = []
    met: Counter[str] = Counter()
    began = time.monotonic()
    for played, seed in enumerate(seeds, 1):
        case, problem = play(seed, met)
        if problem:
            different.append({k: v for k, v in case.items() if k != "turns"})
            print(f"--- seed {seed}\n{json.dumps(case['graphs'])}\n{problem}", flush=True)
        if played % 100 == 0 or played == len(seeds):
            far = f"{played} of {len(seeds)} seeds in {time.monotonic() - began:.0f} s"
            print(f"{far}, {len(different)} differ", file=sys.stderr, flush=True)
    if keep:
        with open(keep, "w") as file:
            json.dump(different, file, indent=1)
    for name, count in sorted(met.items()):
        print(f"{count:6d}  {name}", file=sys.stderr)
    print(f"{len(seeds)} seeds, {len(different)} differ" + "".join(f" {c['id']}" for c in different))
    if met[_RACES] > (most := max(1, len(seeds) // 100)):
        print(f"{met[_RACES]} seeds differ in one play alone: want at most {most}")
        return 1
    return 1 if different or wrong else 0


def show_coverage(seeds: range) -> int:
    """Shows how many seeds draw each feature; 1 if one is drawn too rarely."""
    text, rare = report(count_features(seeds), len(seeds))
    print(text)
    print(f"{len(seeds)} seeds" + (f", drawn too rarely: {', '.join(rare)}" if rare else ""))
    return 1 if rare else 0


def main() -> int:
    """Reads the command line, and plays, counts or records."""
    parser = argparse.ArgumentParser(
        prog="oracle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many; with 0 the recorded cases alone")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--keep", help="file for the cases that differ")
    parser.add_argument(
        "--record", help="file of cases; writes what LangGraph shows, but where graphd differs on purpose"
    )
    parser.add_argument(
        "--export", help="file; writes the cases of the seeds with their code in JavaScript; plays nothing"
    )
    parser.add_argument("--only", type=int, nargs="*", help="with --export: these seeds alone")
    parser.add_argument("--coverage", action="store_true", help="count what is drawn; play nothing")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    if given.coverage:
        return show_coverage(seeds)
    print(f"LangGraph {installed_version()}; the cases are of {ANCHOR.version}", flush=True)
    if given.export:
        print(f"{export_cases(given.only or list(seeds), Path(given.export))} cases are in {given.export}")
        return 0
    if given.record:
        print("written anew:", *record_file(Path(given.record)))
        return 0
    return play_all(seeds, given.keep)


if __name__ == "__main__":
    sys.exit(main())
