"""Which arrows a graph has, found by walking it from its start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from graphd.constants import END, START
from graphd.declare.program import Program

_STEPS = 251


class Arrow(NamedTuple):
    """A way from a node to another; labelled when a decision has a name."""

    source: str
    target: str
    conditional: bool = False
    label: str = ""


def find_arrows(program: Program) -> list[Arrow]:
    """The arrows between nodes that can be reached, and those to the end."""
    walk = _GraphWalk(program)
    walk.visit_nodes()
    found = sorted(walk.found)
    leaving = {a.source for a in found}
    ends = sorted({a.target for a in found if a.target != END} - leaving)
    if ends:
        found += [Arrow(name, END) for name in ends]
    elif len(walk.last) == 1 and not any(a.target == END for a in found):
        found += [Arrow(name, END, True) for name in walk.last]
    return found


class _Way(NamedTuple):
    """What a node does when it has run: it leads to a node, or arrives at a join with others."""

    place: tuple[str, ...]
    """The sources of the join, or nothing, and the target."""
    conditional: bool = False
    label: str = ""


class _GraphWalk:
    """Runs nothing, but goes wherever a run could go."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._decided: dict[str, set[_Way]] = {}
        self._taken: dict[str, set[_Way]] = {}  # by each node when it ran last
        self._arrived: dict[tuple[str, ...], set[str]] = defaultdict(set)
        self._deferred: set[str] = set()
        self.found: set[Arrow] = set()
        self.last: list[str] = []

    def visit_nodes(self) -> None:
        """Takes supersteps until nothing is left to do, or for long enough."""
        due = [START]
        for _ in range(_STEPS):
            if not due:
                return
            self.last = due
            due = self._next_nodes(due)

    def _next_nodes(self, names: list[str]) -> list[str]:
        reached: dict[str, None] = {}
        now: dict[str, set[_Way]] = {}
        for name in names:
            plain = self._plain_ways(name)
            reached.update(dict.fromkeys(way.place[-1] for way in plain if self._arrive(name, way)))
            if name not in self._decided:  # where a decision leads is followed once
                self._decided[name] = self._conditional_ways(name)
                reached.update(dict.fromkeys(way.place[-1] for way in self._decided[name]))
                chosen = {way.place for way in self._decided[name]}
                plain = [way for way in plain if way.place not in chosen]
            now[name] = {*plain, *self._decided[name]}
        self._taken |= {name: set(ways) for name, ways in now.items()}
        due = self._release_nodes(reached)
        for name in due:
            self._draw_arrows(name, now)
        return due

    def _release_nodes(self, reached: Iterable[str]) -> list[str]:
        """The nodes that run next: deferred ones when no others do."""
        nodes = self._program.nodes
        late = {name for name in reached if name in nodes and nodes[name].deferred}
        self._deferred |= late
        due = [name for name in reached if name not in late]
        if not due:
            due, self._deferred = sorted(self._deferred), set()
        return due

    def _draw_arrows(self, name: str, now: dict[str, set[_Way]]) -> None:
        """The arrows to a node that is due.

        A node that was deferred is reached from nodes of earlier supersteps. As in LangGraph it
        then also has a conditional arrow from each node of the superstep before it.
        """
        is_led_to = False
        for source, ways in self._taken.items():
            for way in sorted(ways):
                if way.place[-1] != name:
                    continue
                self.found.add(Arrow(source, name, way.conditional, way.label))
                if way in now.get(source, ()):
                    is_led_to = True
                else:
                    ways.discard(way)
        if not is_led_to:
            self.found.update(Arrow(source, name, True) for source in now)

    def _plain_ways(self, name: str) -> list[_Way]:
        ways = []
        for sources, target in self._program.builder.order:
            if name in sources and target != END:
                ways.append(_Way((*sources, target) if len(sources) > 1 else (target,)))
        return ways

    def _conditional_ways(self, name: str) -> set[_Way]:
        told = [
            (target, "" if str(key) == target else str(key))
            for branch in self._program.builder.branches.get(name, {}).values()
            for key, target in (branch.paths or {}).items()
        ]
        if name in self._program.nodes:
            for target, label in self._program.nodes[name].destinations.items():
                told.append((target, "" if label in (None, target) else str(label)))
        self.found.update(Arrow(name, END, True, label) for target, label in told if target == END)
        return {_Way((target,), True, label) for target, label in told if target != END}

    def _arrive(self, name: str, way: _Way) -> bool:
        """Whether the target of a way is reached: at once, or when all sources of the join have arrived."""
        *sources, _ = way.place
        if not sources:
            return True
        arrived = self._arrived[way.place]
        arrived.add(name)
        if arrived != set(sources):
            return False
        arrived.clear()
        return True
