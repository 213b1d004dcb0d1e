"""How often a task is tried."""

from __future__ import annotations

import random
from collections.abc import Sequence

from graphd.errors import GraphBubbleUp, GraphInterrupt
from graphd.runtime.task import CurrentTask
from graphd.values.policy import RetryPolicy


class Retries:
    """The tries of one call."""

    def __init__(self, policies: Sequence[RetryPolicy], task: CurrentTask, scope: str) -> None:
        self._policies, self._task, self._scope = policies, task, scope
        self._failed = 0

    def find_pause(self, error: Exception) -> float:
        """Seconds until the next try; raises the error when there is none."""
        self._failed += 1
        if not isinstance(error, GraphBubbleUp) and self._task.replay.asks_within(self._scope):
            raise GraphInterrupt(()) from error  # it asked, and has caught the interrupt
        policy = next((p for p in self._policies if p.matches_error(error)), None)
        if isinstance(error, GraphBubbleUp) or policy is None or self._failed >= policy.max_attempts:
            raise error
        self._task.replay.restart_scope(self._scope)
        self._task.runtime = self._task.runtime.patch_execution_info(node_attempt=self._failed + 1)
        pause = min(policy.max_interval, policy.initial_interval * policy.backoff_factor ** (self._failed - 1))
        return pause + (random.uniform(0, 1) if policy.jitter else 0)


__all__ = ["Retries"]
