"""Tells the callback handlers of the caller of a task, where the caller is in this process."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import END, START
from graphd.declare.nodes import BranchDeclaration
from graphd.declare.program import Program
from graphd.errors import GraphInterrupt, ParentCommand
from graphd.names import public_name
from graphd.runtime.traced_graph import TracedGraph
from graphd.runtime.traced_runs import TracedTask
from graphd.values.command import Command
from graphd.worker.work import Work


@dataclass
class TracedWork:
    """One attempt, as the handlers see it."""

    graph: TracedGraph
    task: TracedTask
    work: Work
    place: int = 0
    """Of a conditional edge among what happens in its node, as LangGraph counts."""
    run: Any = None
    """Of a conditional edge."""

    async def start(self) -> Any:
        """The code is about to be called; returns the manager of what runs inside of it."""
        if self.work.branch is None:
            manager = await self.graph.start_node(self.task, self.work.state)
            self.work.streams = self.graph.shows_pieces(manager)
            return manager
        self.run = await self.graph.start_decision(self.task, self.work.branch.name, self.place, self.work.state)
        return None if self.run is None else self.run.get_child()

    async def end(self, result: pb.TaskResult) -> None:
        """The code was called."""
        error = self._find_error(result)
        if self.work.branch is not None:
            await self._end_decision(error)
        elif error is None:
            await self.graph.end_node(self.task, self.work.returned)
        else:
            await self.graph.fail_node(self.task, error)

    async def _end_decision(self, error: BaseException | None) -> None:
        if self.run is None:
            return
        if error is None:
            await self.graph.end_decision(self.task, self.run, self.work.returned)
        else:
            await self.graph.fail_decision(self.task, self.run, error)

    def _find_error(self, result: pb.TaskResult) -> BaseException | None:
        """What a run ends with that does not end well; questions and commands for a parent count as in LangGraph."""
        if self.work.raised is not None:
            return self.work.raised
        if result.HasField("interrupted"):
            return GraphInterrupt(())  # the node caught it
        returned = self.work.returned
        if isinstance(returned, Command) and returned.graph == Command.PARENT and self.task.levels:
            return ParentCommand(returned)
        return None

    def run_steps(self, steps: Coroutine[Any, Any, Any]) -> Any:
        """Runs a method of this in the thread of a plain function."""
        return self.graph.run_steps(steps)

    async def arun_steps(self, steps: Coroutine[Any, Any, Any]) -> Any:
        """Runs a method of this on the loop of a coroutine."""
        return await self.graph.arun_steps(steps)


def trace_work(assignment: pb.TaskAssignment, program: Program, work: Work) -> TracedWork | None:
    """The attempt as the handlers of its caller see it; None without handlers in this process."""
    graph = work.local.find_traced(assignment.namespace) if work.local is not None else None
    if graph is None:
        return None
    branches, node = program.builder.branches.get(work.node, {}), program.nodes.get(work.node)
    config = work.task.config
    about = {key: value for key, value in config["metadata"].items() if key.startswith("langgraph_")}
    task = TracedTask(
        id=assignment.task_id,
        node=public_name(assignment.node),
        levels=tuple(assignment.namespace),
        step=assignment.step,
        tags=config.get("tags") or [],
        metadata=about | dict(node.metadata if node is not None else {}),
        decisions=len(branches),
        is_handler=assignment.kind == pb.TASK_KIND_ERROR_HANDLER,
    )
    return TracedWork(graph, task, work, _place_of(program, work.branch) if work.branch is not None else 0)


def _place_of(program: Program, branch: BranchDeclaration) -> int:
    """LangGraph runs in a node: its code, the write of its update, one write for each edge, the conditional edges."""
    builder, source = program.builder, branch.source
    edges = sum(source in sources and target != END for sources, target in builder.order)
    before = (0 if source == START else 1) + 1 + edges
    return before + 1 + list(builder.branches[source]).index(branch.name)


__all__ = ["TracedWork", "trace_work"]
