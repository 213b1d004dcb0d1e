"""The oracle itself: a comparison that lets something pass proves nothing."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphd.checkpoint.memory import InMemorySaver
from oracle.cases import random_case
from oracle.coverage import count_features, report
from oracle.record import Recorder
from oracle.recorded import check_case, read_cases
from oracle.releases import ANCHOR, RELEASES, UNSTEADY, find_release, installed_version
from oracle.transcript import format_cases, record_file

from .conformance.matching import match, match_groups, match_unordered
from .conformance.program import World, compile_all
from .conformance.steps import Mismatch, Player

Case = dict[str, Any]
SEED = 19
"""A case on which both show the same."""


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 2),
        (1, True),
        (0, None),
        (1, "1"),
        ("a", "b"),
        ([], None),
        ([1, 2], [2, 1]),
        ([1, 2], [1]),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}),
        ({"interrupts": [1, 2]}, {"interrupts": [1, 1]}),
        ("<uuid>", ""),
        (["cp1", "cp1"], ["x", "y"]),
        (["cp1", "cp2"], ["x", "x"]),
        ("sub:t1", "other:x"),
        ("sub:t1", "sub:x|more:y"),
    ],
)
def test_what_is_not_equal_does_not_match(expected: Any, actual: Any) -> None:
    assert match(expected, actual, {}) is None


def test_what_is_equal_matches() -> None:
    assert match({"a": [1, None, "x"], "interrupts": [1, 2]}, {"a": [1.0, None, "x"], "interrupts": [2, 1]}, {}) == {}
    assert match(["cp1", "t1", "sub:t1"], ["x", "y", "sub:y"], {}) == {"cp1": "x", "t1": "y"}


def test_the_order_matters_between_groups_and_not_inside() -> None:
    assert match_unordered([1, 2], [2, 1], {}) == {}
    assert match_groups([1, 2, 3], [2, 1, 3], [2, 1], {}) == [{}]
    assert match_groups([1, 2, 3], [1, 3, 2], [2, 1], {}) == []
    assert match_groups([1, 2], [2, 1], None, {}) == []
    for sizes in ([1], [1, 1, 1]):
        with pytest.raises(ValueError, match="groups"):
            match_groups([1, 2], [1, 3], sizes, {})


def test_tasks_that_look_alike_are_told_apart_by_what_is_shown_later() -> None:
    assert match_groups(["t1", "t2"], ["x", "y"], [2], {}) == [{"t1": "x", "t2": "y"}, {"t1": "y", "t2": "x"}]
    player = Player({"graphs": [], "steps": []}, World(), None)
    player._check_run({}, {"events": ["t1", "t2"], "groups": [2]}, ["x", "y"], None)
    player._check({"id": "t1", "result": 1}, {"id": "y", "result": 1}, "task")
    assert player.known == {"t1": "y", "t2": "x"}
    with pytest.raises(Mismatch):
        player._check({"id": "t2", "result": 2}, {"id": "y", "result": 2}, "task")


# Cases that LangGraph played, with one thing changed.


def dropped(case: Case) -> Iterator[tuple[str, Case]]:
    """Every event is missing once."""
    for step, at in places(case, "events"):
        other = copy.deepcopy(case)
        expect = other["steps"][step]["expect"]
        del expect["events"][at]
        expect["groups"] = [1] * len(expect["events"])
        yield f"step {step} without event {at}", other


def doubled(case: Case) -> Iterator[tuple[str, Case]]:
    """Every event comes twice once."""
    for step, at in places(case, "events"):
        other = copy.deepcopy(case)
        expect = other["steps"][step]["expect"]
        expect["events"].insert(at, expect["events"][at])
        expect["groups"] = [1] * len(expect["events"])
        yield f"step {step} with event {at} twice", other


def swapped(case: Case) -> Iterator[tuple[str, Case]]:
    """Neighbours of different groups change places."""
    for number, step in enumerate(case["steps"]):
        groups = [] if "until" in step["expect"] else step["expect"].get("groups", [])
        for at in itertools.accumulate(groups[:-1]):
            other = copy.deepcopy(case)
            events = other["steps"][number]["expect"]["events"]
            if events[at] != events[at - 1]:
                events[at], events[at - 1] = events[at - 1], events[at]
                yield f"step {number} with events {at} and {at - 1} swapped", other


def altered(case: Case) -> Iterator[tuple[str, Case]]:
    """Every state and checkpoint has another value once."""
    for number, step in enumerate(case["steps"]):
        shown = step["expect"].get("history", [step["expect"].get("snapshot")])
        for at, field in itertools.product(range(len(shown)), ("values", "next", "metadata", "tasks")):
            if shown[at] is None or field not in shown[at]:
                continue
            other = copy.deepcopy(case)
            rows = other["steps"][number]["expect"].get("history", [other["steps"][number]["expect"].get("snapshot")])
            rows[at][field] = {"n": -1} if isinstance(rows[at][field], dict) else [*rows[at][field], "more"]
            yield f"step {number} row {at} with other {field}", other


def places(case: Case, what: str) -> Iterator[tuple[int, int]]:
    for number, step in enumerate(case["steps"]):
        if "until" not in step["expect"]:
            yield from ((number, at) for at in range(len(step["expect"].get(what, []))))


def play(case: Case) -> None:
    world, saver = World(), InMemorySaver()
    try:
        compile_all(world, case, saver)
        Player(case, world, saver).play()
    finally:
        for graph in world.graphs.values():
            graph.detach()


def test_every_feature_is_drawn() -> None:
    text, rare = report(count_features(range(1, 1001)), 1000)
    assert rare == [], text


def test_a_feature_that_is_drawn_too_rarely_is_reported() -> None:
    assert report(Counter({"often": 50, "rarely": 49, "never": 0}), 5000)[1] == ["never", "rarely"]


@pytest.mark.parametrize("change", [dropped, doubled, swapped, altered])
def test_one_thing_that_differs_is_found(change: Callable[[Case], Iterator[tuple[str, Case]]]) -> None:
    case = random_case(SEED)
    Recorder(case).record()
    play(case)
    changes = list(change(case))
    assert len(changes) > 4
    for what, other in changes[:: max(1, len(changes) // 8)]:
        try:
            play(other)
        except Mismatch:
            continue
        pytest.fail(f"no difference was found: {what}")


# The recorded cases on LangGraph itself.


def recorded(identifier: str) -> Case:
    return copy.deepcopy(next(case for case in read_cases() if case["id"] == identifier))


@pytest.mark.parametrize("identifier", ["A01", "E02", "E13", "K01"])
def test_langgraph_plays_a_recorded_case_as_it_says(identifier: str) -> None:
    assert check_case(recorded(identifier), ANCHOR) == ""


def test_a_recorded_case_that_is_wrong_is_found() -> None:
    case = recorded("A01")
    case["steps"][0]["expect"]["events"].pop()
    case["steps"][0]["expect"]["groups"].pop()
    assert "events" in check_case(case, ANCHOR)
    marked = recorded("A01") | {"differs": "nothing at all"}
    assert "does not differ any more" in check_case(marked, ANCHOR)
    former = RELEASES[0]
    assert check_case(recorded("E02"), former) == "plays as on the anchor, though the table of releases says otherwise"


def test_the_installed_release_is_the_anchor() -> None:
    assert find_release(installed_version()) == ANCHOR
    assert [find_release(v).version for v in ("1.2.3", "1.2.11", "1.2.21", "1.3.0")] == ["1.2.11"] * 3 + ["1.2.22"]


def test_the_table_of_releases_names_recorded_cases() -> None:
    known = {case["id"] for case in read_cases()}
    assert {*UNSTEADY, *(name for release in RELEASES for name in release.changed)} <= known
    assert not ANCHOR.changed


def test_cases_are_recorded_as_langgraph_plays_them(tmp_path: Path) -> None:
    cases = [recorded(identifier) for identifier in ("L02", "L05", "L06", "L08", "L09", "L14")]
    lost = copy.deepcopy(cases)
    for case in lost:
        for step in case["steps"]:
            step["expect"] = {} if not case.get("differs") else step["expect"]
    file = tmp_path / "cases.json"
    file.write_text(format_cases(lost))
    assert record_file(file) == ["L02", "L06", "L08", "L09", "L14"]
    assert json.loads(file.read_text()) == cases
    assert record_file(file) == []


def test_what_is_not_recorded_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(json.dumps([recorded("L14") | {"steps": [{"do": {"op": "progress", "thread": "1"}}]}]))
    with pytest.raises(ValueError, match="L14: progress can't be recorded, only stream"):
        record_file(file)
