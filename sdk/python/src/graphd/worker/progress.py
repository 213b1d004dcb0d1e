"""What the attempts of a session have to tell while they run. A look at it costs what there is to tell."""

from __future__ import annotations

import threading
import time
from collections import deque

from graphd.worker.attempt import Attempt

_ANNOUNCE_AFTER = 0.1  # seconds; most tasks have ended by then, and need not be announced


class Progress:
    """Attempts with events that wait, and attempts that are to be announced.

    Safe to use from several threads: the methods of deques that are used are atomic.
    """

    def __init__(self) -> None:
        self._emitting: deque[Attempt] = deque()
        self._begun: deque[Attempt] = deque()  # in the order of their starts
        self._has_news = threading.Event()

    def add_begun(self, attempt: Attempt) -> None:
        """Takes an attempt that is announced if it has not ended a moment later."""
        self._begun.append(attempt)
        self.wake()

    def add_emitting(self, attempt: Attempt) -> None:
        """Takes an attempt whose first waiting event is being added."""
        self._emitting.append(attempt)
        self.wake()

    def wake(self) -> None:
        """Ends the wait for news."""
        if not self._has_news.is_set():
            self._has_news.set()

    def wait_for_news(self, timeout: float) -> None:
        """Waits until there is something to tell, for so many seconds at most."""
        self._has_news.clear()
        if not (self._begun or self._emitting):  # what comes from now on ends the wait
            self._has_news.wait(timeout)

    def send(self) -> None:
        """Sends the events that wait, and says of tasks which take longer that they run."""
        for _ in range(len(self._emitting)):  # those that come meanwhile wait for the next time
            attempt = self._emitting.popleft()
            if not attempt.is_gone:
                attempt.flush_events()
        due = time.monotonic() - _ANNOUNCE_AFTER
        while self._begun and self._begun[0].started < due:
            attempt = self._begun.popleft()
            if not (attempt.announced or attempt.is_gone):
                attempt.report_alive()


__all__ = ["Progress"]
