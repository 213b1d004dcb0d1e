"""How long a server may stay away."""

from __future__ import annotations

import time

from graphd.errors import GraphdError

_LIMIT = 30.0  # seconds
_FIRST, _LONGEST = 0.05, 2.0


class Patience:
    """Spaces attempts, and ends them when none has helped for a while."""

    def __init__(self) -> None:
        self._pause, self._since = _FIRST, 0.0

    def progress(self) -> None:
        """Something came; the next problem is a new one."""
        self._pause, self._since = _FIRST, 0.0

    def pause(self, problem: GraphdError, limit: float = _LIMIT) -> float:
        """Seconds to wait before the next attempt; raises the problem when there
        have been enough."""
        now = time.monotonic()
        self._since = self._since or now
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        if now + pause > self._since + limit:
            raise problem
        return pause


def passes(problem: GraphdError) -> bool:
    """Whether the server has left or can't be reached, and another one, or the
    same one later, may answer."""
    return problem.reason == "SERVER_DRAINING" or (problem.code == "UNAVAILABLE" and not problem.reason)
