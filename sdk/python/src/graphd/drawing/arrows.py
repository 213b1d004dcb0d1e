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


class _GraphWalk:
    """Runs nothing, but goes wherever a run could go."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._decided: set[str] = set()
        self._arrived: dict[tuple[tuple[str, ...], str], set[str]] = defaultdict(set)
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

    def _next_nodes(self, names: Iterable[str]) -> list[str]:
        reached: dict[str, None] = {}
        for name in names:
            for arrow in self._arrows_from(name):
                self.found.add(arrow)
                if arrow.target != END:
                    reached[arrow.target] = None
            for target in self._completed_joins(name):
                reached[target] = None
        late = {n for n in reached if n in self._program.nodes and self._program.nodes[n].deferred}
        self._deferred |= late
        now = [n for n in reached if n not in late]
        if not now:
            now, self._deferred = sorted(self._deferred), set()
        return now

    def _arrows_from(self, name: str) -> Iterable[Arrow]:
        for sources, target in self._program.builder.order:
            if sources == (name,) and target != END:
                yield Arrow(name, target)
        if name in self._decided:
            return  # where a decision leads is told once
        self._decided.add(name)
        for branch in self._program.builder.branches.get(name, {}).values():
            for key, target in (branch.paths or {}).items():
                yield Arrow(name, target, True, "" if str(key) == target else str(key))
        if name in self._program.nodes:
            for target, label in self._program.nodes[name].destinations.items():
                yield Arrow(name, target, True, "" if label in (None, target) else str(label))

    def _completed_joins(self, name: str) -> Iterable[str]:
        """The nodes that have waited for this one and for no other any more."""
        for sources, target in self._program.builder.order:
            if len(sources) < 2 or name not in sources:
                continue
            arrived = self._arrived[sources, target]
            arrived.add(name)
            if arrived == set(sources):
                arrived.clear()
                self.found.update(Arrow(source, target) for source in sources)
                if target != END:
                    yield target
