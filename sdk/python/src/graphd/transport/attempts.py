"""When a call is made again, and when it is too late for that."""

from __future__ import annotations

import time

from graphd.errors import CallTimeoutError, GraphdError
from graphd.transport.backoff import UNOPENED, Backoff, is_transient

_SLACK = 0.5  # seconds between the timers of a server and of its client


class Deadline:
    """When a call must have its answer."""

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None and not seconds > 0:
            raise ValueError(f"timeout is {seconds!r}: want seconds above 0, or None for no limit")
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float | None:
        """Seconds that are left, None without a limit; raises CallTimeoutError when there are none."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise self._expired()
        return left

    def check_problem(self, problem: GraphdError) -> None:
        """Raises CallTimeoutError in plain words when the problem is that the time is over."""
        if self._end is None or problem.reason not in ("", "DEADLINE_EXCEEDED"):
            return
        # The server ends a call at its deadline, too; that may arrive before the own timer has run out.
        is_reset = problem.code == "CANCELLED" and time.monotonic() > self._end - _SLACK
        if problem.code == "DEADLINE_EXCEEDED" or is_reset:
            raise self._expired() from None

    def check_pause(self, pause: float, problem: GraphdError) -> float:
        """The pause; raises CallTimeoutError because of the problem when the time ends before it."""
        if self._end is not None and time.monotonic() + pause >= self._end:
            raise self._expired() from problem
        return pause

    def _expired(self) -> CallTimeoutError:
        return CallTimeoutError(f"no answer within {self._seconds:g} s", code="DEADLINE_EXCEEDED")


NO_DEADLINE = Deadline()


class Attempts:
    """The attempts at one call that may be repeated."""

    def __init__(self, *, opened: bool, deadline: Deadline = NO_DEADLINE) -> None:
        self._opened, self._deadline = opened, deadline
        self._backoff = Backoff()

    def next_pause(self, problem: GraphdError) -> float:
        """Seconds to wait before the next attempt; raises the problem when there is none."""
        self._deadline.check_problem(problem)
        if not is_transient(problem):
            raise problem
        # Without a reason no server has answered: it may not be there at all.
        if problem.reason or self._opened:
            return self._deadline.check_pause(self._backoff.next_pause(problem), problem)
        return self._deadline.check_pause(self._backoff.next_pause(problem, UNOPENED), problem)
