"""Holds the tasks of a run back until the reader of its stream has taken what came before them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

# Seconds for which a reader may wait for more before all tasks begin: whatever was to
# announce them does not come.
_PATIENCE = 0.5


@dataclass(frozen=True)
class HeldTask:
    """A task that a worker has taken and not begun."""

    task_id: str
    step: int
    begin: Callable[[], None]


class ReaderGate:
    """Lets the supersteps of one run begin in the pace of the reader, as LangGraph does.

    A superstep begins when the reader asks for more after it has taken the checkpoint
    before. The first superstep of a run that goes on with tasks that were due before is
    announced by no checkpoint, but by release_first. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: set[str] = set()
        self._steps: set[int] = set()  # supersteps that have begun
        self._is_first_free = False
        self._held: list[HeldTask] = []
        self._waiting_since: float | None = None
        self._is_open = False

    def submit(self, task: HeldTask) -> None:
        """Begins a task, now or when the reader has come so far."""
        with self._lock:
            if not self._may_begin(task):
                self._held.append(task)
                return
        task.begin()

    def release_due(self, tasks: Iterable[str]) -> None:
        """The reader has taken all up to a checkpoint with these due tasks, and asks for more."""
        with self._lock:
            self._due = set(tasks)
            ready = self._take_ready()
        for task in ready:
            task.begin()

    def release_first(self) -> None:
        """The reader has taken all up to the tasks with which the run goes on, and asks for more."""
        with self._lock:
            self._is_first_free = True
            ready = self._take_ready()
        for task in ready:
            task.begin()

    def withdraw(self, task_id: str) -> None:
        """Has a held task begin at once: it was stopped."""
        with self._lock:
            found = [task for task in self._held if task.task_id == task_id]
            self._held = [task for task in self._held if task.task_id != task_id]
        for task in found:
            task.begin()

    @property
    def is_holding(self) -> bool:
        """A task waits for the reader."""
        return bool(self._held)

    def mark_waiting(self) -> None:
        """The reader asks for more."""
        self._waiting_since = time.monotonic()

    def mark_reading(self) -> None:
        """The reader has got something."""
        self._waiting_since = None

    def check_patience(self) -> None:
        """Begins all that is held for a reader that waits in vain. Called again and again."""
        since = self._waiting_since
        if since is not None and self._held and time.monotonic() - since > _PATIENCE:
            self.open()

    def open(self) -> None:
        """Holds nothing back any more."""
        with self._lock:
            self._is_open = True
            ready = self._take_ready()
        for task in ready:
            task.begin()

    def _take_ready(self) -> list[HeldTask]:
        ready = [task for task in self._held if self._may_begin(task)]
        self._held = [task for task in self._held if task not in ready]
        return ready

    def _may_begin(self, task: HeldTask) -> bool:
        if self._is_first_free and not self._steps:
            self._steps.add(task.step)
        if task.task_id in self._due:  # error handlers of the superstep follow, which are not announced
            self._steps.add(task.step)
        return self._is_open or task.step in self._steps
