"""Writes that reach a saver before the checkpoint that they follow.

LangGraph stores checkpoints and writes in the background, side by side. A
reader of a log looks for the writes of a checkpoint behind it, so a checkpoint
is stored together with the writes that may be in front of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from graphd.checkpoint.langgraph.records import TaskWrites
from graphd.checkpoint.langgraph.threads import Place

_MOST_STORED = 10_000  # checkpoints that are remembered
_MOST_EARLY = 1000  # checkpoints whose writes are; LangGraph never stores some of them


class Key(NamedTuple):
    """Names a checkpoint."""

    place: Place
    checkpoint_id: str


class EarlyWrites:
    """What this process knows of the order in which it stores. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: OrderedDict[Key, None] = OrderedDict()
        self._early: OrderedDict[Key, list[TaskWrites]] = OrderedDict()

    def is_stored(self, key: Key) -> bool:
        """Whether the checkpoint is known to be in the log."""
        with self._lock:
            return key in self._stored

    def note_stored(self, key: Key, taken: int = 0) -> tuple[TaskWrites, ...]:
        """The checkpoint is in the log. Returns the writes that have come since the first ``taken`` were."""
        with self._lock:
            self._stored[key] = None
            self._stored.move_to_end(key)
            if len(self._stored) > _MOST_STORED:
                self._stored.popitem(last=False)
            return tuple(self._early.pop(key, [])[taken:])

    def note_writes(self, key: Key, writes: TaskWrites) -> None:
        """Writes are about to be stored."""
        with self._lock:
            if key in self._stored:
                return
            self._early.setdefault(key, []).append(writes)
            if len(self._early) > _MOST_EARLY:
                self._early.popitem(last=False)

    def writes_before(self, key: Key) -> tuple[TaskWrites, ...]:
        """The writes that may be in the log before the checkpoint."""
        with self._lock:
            return tuple(self._early.get(key, ()))
