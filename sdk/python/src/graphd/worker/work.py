"""What one attempt calls, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.actions import Action
from graphd.declare.nodes import BranchDeclaration
from graphd.runtime.local_runs import LocalRun
from graphd.runtime.task import CurrentTask
from graphd.values.policy import RetryPolicy
from graphd.worker.message_ids import MessageIds


@dataclass
class Work:
    """An assignment, prepared: what to call, with what, and how to end it."""

    task: CurrentTask
    action: Action
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    finish: Callable[[Any], pb.TaskResult]
    policies: Callable[[], tuple[RetryPolicy, ...]]
    node: str
    local: LocalRun | None
    ids: MessageIds
    branch: BranchDeclaration | None = None
    streams: bool = False
    """A runnable is to stream, because a reader or a handler is told of its pieces."""
    returned: Any = None
    raised: BaseException | None = None
    error: BaseException | None = None
    """What the attempt has failed with."""

    def release_errors(self) -> None:
        """Ends the cycle of an error, the frames it was raised in, and the attempt that they ran."""
        self.raised = self.error = None

    @property
    def state(self) -> Any:
        """What the code is called with."""
        positional, _ = self.arguments
        return positional[0] if positional else {}


__all__ = ["Work"]
