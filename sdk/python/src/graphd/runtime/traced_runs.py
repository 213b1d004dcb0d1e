"""What callback handlers are told of: graphs, and the tasks in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Levels = tuple[str, ...]


class GraphState(NamedTuple):
    """What is stored of a graph."""

    values: Any
    step: int
    is_done: bool
    """No node of it is due."""


class TracedProgram(Protocol):
    """What has to be known of a graph whose runs are traced."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What with_config has bound to it."""

    def child(self, node: str) -> TracedProgram | None:
        """The graph that is a node of it; None for other nodes."""

    def read_state(self, levels: Sequence[str]) -> GraphState:
        """What the server has of it, in this namespace."""


@dataclass(frozen=True)
class TracedTask:
    """What is told of a task."""

    id: str
    node: str
    levels: Levels
    step: int
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    decisions: int
    """How many conditional edges of the node call code after it."""
    is_handler: bool = False


@dataclass
class GraphRun:
    """The run of a graph. Of a graph that is a node it has the run of the node, and the superstep of that."""

    run: Any
    program: TracedProgram
    levels: Levels
    node_run: Any = None
    step: int = 0
    failure: BaseException | None = None
    failed_task: tuple[int, str] = (0, "")

    def set_failure(self, error: BaseException, step: int, task: str) -> None:
        """A task has failed: the graph fails as well, unless it goes on."""
        self.failure, self.failed_task = error, (step, task)

    def forget_failure(self, task: TracedTask) -> None:
        """A later superstep, another try or a handler: what has failed does not fail the graph."""
        step, failed = self.failed_task
        if task.is_handler or task.step > step or task.id == failed:
            self.failure = None

    def is_around(self, levels: Levels) -> bool:
        """A namespace is that of the graph, or inside of it."""
        return levels[: len(self.levels)] == self.levels


@dataclass
class NodeRun:
    """The run of a node. It goes on while conditional edges of the node decide."""

    run: Any
    graph: GraphRun
    task: TracedTask
    decisions: int
    output: Any = None
