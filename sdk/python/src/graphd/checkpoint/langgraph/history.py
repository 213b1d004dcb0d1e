"""Checkpoints with their writes, as they come out of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphd.checkpoint.langgraph.records import Blob, SavedCheckpoint, TaskWrites
from graphd.checkpoint.langgraph.thread_log import LogEntry


class StoredCheckpoint(NamedTuple):
    """A checkpoint, the writes after it in the order in which they were stored, and its depth in the log."""

    saved: SavedCheckpoint
    writes: tuple[TaskWrites, ...]
    depth: int

    def pending_writes(self) -> list[tuple[str, str, Blob]]:
        """The task, the channel and the value of each write, in LangGraph's order.

        Of two regular writes at one index of a task the first counts, because a
        repeated call changes nothing. Of two special ones the last counts.
        """
        found: dict[tuple[str, str, int], tuple[str, Blob]] = {}
        paths: dict[tuple[str, int], str] = {}
        for task in self.writes:
            for index, channel, value in task.writes:
                path = paths.get((task.task_id, index))
                if path is not None and index >= 0:
                    continue
                if path is not None:
                    del found[path, task.task_id, index]
                paths[task.task_id, index] = task.task_path
                found[task.task_path, task.task_id, index] = (channel, value)
        return [(key[1], *found[key]) for key in sorted(found)]


def find_checkpoints(entries: Iterable[LogEntry]) -> Iterator[StoredCheckpoint]:
    """The checkpoints of a log, newest first. Of one that was stored again the newest counts."""
    later: dict[str, list[TaskWrites]] = {}
    seen: set[str] = set()
    for record, depth in entries:
        if (saved := record.checkpoint) is not None and saved.checkpoint_id not in seen:
            seen.add(saved.checkpoint_id)
            after = later.pop(saved.checkpoint_id, [])
            yield StoredCheckpoint(saved, (*record.writes, *reversed(after)), depth)
        elif saved is None:
            for writes in record.writes:
                if writes.checkpoint_id not in seen:
                    later.setdefault(writes.checkpoint_id, []).append(writes)


def find_checkpoint(entries: Iterable[LogEntry], checkpoint_id: str | None) -> StoredCheckpoint | None:
    """The checkpoint with an id, or the newest."""
    return next((s for s in find_checkpoints(entries) if checkpoint_id in (None, s.saved.checkpoint_id)), None)
