"""The questions that a stream shows, and where: in the graph that asked, and in those around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphd._gen.v1 import interrupt_pb2
from graphd.client import snapshots
from graphd.names import public_levels
from graphd.values.command import Interrupt

Levels = tuple[str, ...]
Group = tuple[Levels, tuple[Interrupt, ...]]
"""Questions that one task waits for, and the graph of the task."""

_Question = tuple[Levels, interrupt_pb2.Interrupt]


class ShownQuestions:
    """What a call has shown of the questions of its run."""

    def __init__(self, *, subgraphs: bool) -> None:
        self._subgraphs = subgraphs
        self._raised: set[str] = set()
        self._asked: set[str] = set()
        self._asked_below: list[_Question] = []  # in graphs inside of others, which have not shown them

    def record_raised(self, levels: Levels, raised: Iterable[interrupt_pb2.Interrupt]) -> Iterator[Group]:
        """Takes new interrupts of a graph; the questions among them show there, if the graph shows at all."""
        interrupts = list(raised)
        self._raised.update(one.interrupt_id for one in interrupts)
        asked = [(levels, one) for one in interrupts if snapshots.is_question(one)]
        self._asked.update(one.interrupt_id for _, one in asked)
        if levels:
            self._asked_below.extend(asked)
        if self._subgraphs or not levels:
            yield from _group_by_task(asked, len(levels))

    def has_raised(self, identifiers: Iterable[str]) -> bool:
        """All these interrupts were raised in this call."""
        return self._raised.issuperset(identifiers)

    def has_asked(self, identifiers: Iterable[str]) -> bool:
        """One of these interrupts is a question that was shown."""
        return not self._asked.isdisjoint(identifiers)

    def groups_at_end(self, waiting: Iterable[interrupt_pb2.Interrupt]) -> Iterator[Group]:
        """What shows at the end: questions that wait since an earlier call, and new ones in the graphs around.

        A task waits for all questions of the graphs that run in it, so these are complete only now.
        """
        known = [
            (public_levels(one.checkpoint.namespace), one)
            for one in waiting
            if one.interrupt_id not in self._raised and snapshots.is_question(one)
        ]
        self._asked.update(one.interrupt_id for _, one in known)
        below, self._asked_below = self._asked_below, []
        deepest = max((len(at) for at, _ in (*known, *below)), default=0) if self._subgraphs else 0
        for depth in range(deepest, -1, -1):
            shown = [(at, one) for at, one in known if len(at) >= depth]
            yield from _group_by_task([*shown, *((at, one) for at, one in below if len(at) > depth)], depth)


def _group_by_task(asked: Iterable[_Question], depth: int) -> Iterator[Group]:
    """Questions by the tasks at a depth that wait for them."""
    groups: dict[tuple[Levels, str], list[Interrupt]] = {}
    for at, one in asked:
        task = at[depth] if len(at) > depth else one.task_id
        groups.setdefault((at[:depth], task), []).append(snapshots.to_interrupt(one))
    for (where, _), group in groups.items():
        yield where, tuple(group)
