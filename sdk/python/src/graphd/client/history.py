"""The history of a thread, as LangGraph's programs expect it.

A call with ``durability="exit"`` stores one checkpoint in LangGraph. graphd
stores all of them, or a crash would lose work; what such a call has made shows
as one, the last, and its parent is where the call began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from graphd._gen.v1 import thread_pb2
from graphd.client.labels import EXIT

State = thread_pb2.StateSnapshot


def mark_of(state: State) -> str:
    """What the checkpoints of one such call have in common; "" for others."""
    return str(state.metadata.get(EXIT, ""))


def fold_checkpoints(states: Iterable[State]) -> Iterator[State]:
    """The checkpoints that show, newest first, each with the parent that shows."""
    waiting: deque[State] = deque()
    shown: set[str] = set()
    passed: set[str] = set()
    continued: set[str] = set()  # checkpoints with results of other calls
    for state in states:
        if not mark_of(state) and state.source == thread_pb2.CHECKPOINT_SOURCE_LOOP:
            continued.add(state.parent.checkpoint_id)
        for later in waiting:
            _skip_hidden_parent(later, state)
            if state.checkpoint.checkpoint_id not in continued:
                _hide_results(later, state)
        if not (mark := mark_of(state)) or mark not in shown:
            shown.add(mark)
            waiting.append(state)
        passed.add(state.checkpoint.checkpoint_id)
        while waiting and not (mark_of(waiting[0]) and _is_ahead(waiting[0], passed)):
            yield waiting.popleft()
    yield from waiting


def _skip_hidden_parent(later: State, state: State) -> None:
    """Takes the parent's parent for a checkpoint whose parent does not show."""
    if mark_of(later) and mark_of(later) == mark_of(state) and later.parent == state.checkpoint and later is not state:
        later.ClearField("parent")
        if state.HasField("parent"):
            later.parent.CopyFrom(state.parent)


def _hide_results(later: State, state: State) -> None:
    """Takes the results of such a call out of the checkpoint at which it began: it has stored them in its own."""
    begins = mark_of(later) and mark_of(later) != mark_of(state) and later.parent == state.checkpoint
    if begins and not any(task.HasField("failure") or task.interrupts for task in state.tasks):
        for task in state.tasks:
            task.ClearField("result")


def _is_ahead(later: State, passed: set[str]) -> bool:
    """The parent of a checkpoint is yet to come."""
    return later.HasField("parent") and later.parent.checkpoint_id not in passed
