"""How sure a worker can be that its tasks are still its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SHARE = 0.8  # of the time after which the server gives up on a silent worker
_SILENT_BEATS = 3


class LeaseCertainty:
    """Sure is who was answered a short while ago: a beat, or a greeting, whose
    answer would have named what is lost. A process that was paused, or cut off,
    is not sure until it has asked again."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._asked: dict[int, float] = {}
        self._since, self._span = time.monotonic(), 1.0

    def record_question(self, number: int) -> None:
        """A beat, or with number 0 the greeting, is on its way."""
        with self._changed:
            if number == 0:
                self._asked.clear()
            self._asked[number] = time.monotonic()

    def record_answer(self, number: int) -> None:
        """The server has answered it."""
        with self._changed:
            self._since = self._asked.get(number, self._since)
            self._asked = {n: at for n, at in self._asked.items() if n > number}
            self._changed.notify_all()

    def record_disconnect(self) -> None:
        """The connection is broken: who knows what was lost with it."""
        with self._changed:
            self._asked.clear()
            self._since = float("-inf")

    def set_intervals(self, beat: float, lease: float) -> None:
        """The server has said for how long it waits."""
        with self._changed:
            self._span = _SHARE * min(_SILENT_BEATS * beat, lease)

    @property
    def is_sure(self) -> bool:
        """Nothing can have been lost."""
        return time.monotonic() - self._since < self._span

    def wait_until(self, done: Callable[[], bool], over: Callable[[], bool]) -> None:
        """Waits until something has come, like certainty, or it is over."""
        with self._changed:
            while not done() and not over():
                self._changed.wait(0.05)
