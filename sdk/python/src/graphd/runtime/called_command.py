"""What a node can be told by a graph that it has called."""

from __future__ import annotations

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.errors import ParentCommand
from graphd.values.command import Command


class CalledCommand(ParentCommand):
    """A graph that was called inside a node sent a command to its parent."""

    def __init__(self, outcome: pb.TaskCompleted) -> None:
        super().__init__(Command(graph=Command.PARENT))
        self.outcome = outcome
