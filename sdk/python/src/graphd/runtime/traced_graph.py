"""One call of a graph, as callback handlers see it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphd.constants import START, TAG_HIDDEN
from graphd.runtime.callbacks import run_on_loop, run_plain, settle
from graphd.runtime.open_runs import OpenRuns
from graphd.runtime.traced_runs import GraphRun, Levels, TracedProgram, TracedTask
from graphd.threads import run_in_thread

T = TypeVar("T")


@dataclass
class TracedGraph:
    """The runs of one call. Its methods are coroutines for plain and for async managers."""

    program: TracedProgram
    manager: Any
    input: Any
    run_name: str
    run_id: Any = None
    loop: asyncio.AbstractEventLoop | None = None
    """Where an async manager is used; None for a plain one."""
    output_keys: str | Sequence[str] | None = None
    """The part of the state that is the output; None for all of it."""
    output: Any = None
    _runs: OpenRuns = field(init=False)

    # The call.

    async def start(self) -> None:
        """The run of the graph begins."""
        run = await settle(self.manager.on_chain_start(None, self.input, name=self.run_name, run_id=self.run_id))
        self._runs = OpenRuns(GraphRun(run, self.program, ()), self.loop)

    def set_base(self, levels: Levels) -> None:
        """Says where in its thread a graph is that was called inside of another one, before its first task begins."""
        root = self._runs.root
        root.levels, self._runs.graphs = levels, {levels: root}

    async def end_inner(self, ends: Sequence[Levels]) -> None:
        """Ends graphs that are nodes, around and in namespaces: the caller is about to see what came of them."""
        if ends and len(self._runs.graphs) > 1:
            async with self._runs.turn():
                await self._runs.close_ended(ends)

    def keep_output(self, state: Any) -> None:
        """Says what the call has come to, before it ends."""
        keys = self.output_keys
        if keys is None or not isinstance(state, dict):
            self.output = state
        else:
            self.output = state.get(keys) if isinstance(keys, str) else {k: state[k] for k in keys if k in state}

    async def finish(self) -> None:
        """The graph has come to its end or to questions."""
        async with self._runs.turn():
            await self._runs.close_inside(self._runs.root, None)
        await settle(self._runs.root.run.on_chain_end(self.output))

    async def fail(self, error: BaseException) -> None:
        """The call raises."""
        async with self._runs.turn():
            await self._runs.close_inside(self._runs.root, error)
        await settle(self._runs.root.run.on_chain_error(error))

    def run_steps(self, steps: Coroutine[Any, Any, T]) -> T | None:
        """Runs a method of this in a thread that is not that of the loop."""
        return run_plain(steps) if self.loop is None else run_on_loop(steps, self.loop)

    async def arun_steps(self, steps: Coroutine[Any, Any, T]) -> T | None:
        """Runs a method of this on any loop."""
        if self.loop is None:
            return run_plain(steps)
        if self.loop is asyncio.get_running_loop():
            return await steps
        return await run_in_thread(run_on_loop, steps, self.loop)

    # Tasks.

    async def start_node(self, task: TracedTask, input: Any) -> Any:
        """A node begins; returns the manager of the runs inside of it."""
        runs = self._runs
        async with runs.turn():
            if (before := runs.nodes.get(task.id)) is not None:  # another process was to decide its edges
                await runs.close_node(before)
            graph = await runs.graph_of(task)
            return (await runs.open_node(graph, task, input)).run.get_child("seq:step:1")

    def shows_pieces(self, manager: Any) -> bool:
        """A handler wants to see results as they come."""
        return manager is not None and bool(self._runs.streaming_handlers(manager))

    async def end_node(self, task: TracedTask, output: Any) -> None:
        """A node has returned. Its run goes on while conditional edges decide."""
        node = self._runs.nodes.get(task.id)
        if node is not None:
            node.output = output
            await self._runs.close_decided(node)

    async def fail_node(self, task: TracedTask, error: BaseException) -> None:
        """A node, or an edge of it, has raised."""
        node = self._runs.nodes.get(task.id)
        if node is not None:
            await self._runs.fail_node(node, error)

    async def start_decision(self, task: TracedTask, name: str, place: int, input: Any) -> Any:
        """The code of a conditional edge begins; returns its run, None when the node has none here."""
        runs = self._runs
        async with runs.turn():
            node = runs.nodes.get(task.id)
            if node is None and task.node == START:
                graph = await runs.graph_of(task)
                given = self.input if graph is runs.root else input
                node = await runs.open_node(graph, task, given, hidden=True)
                node.output = given
        if node is None:
            return None
        child = node.run.get_child(f"seq:step:{place}")
        child.add_tags([*task.tags, TAG_HIDDEN] if task.node == START else task.tags)
        return await settle(child.on_chain_start(None, input, name=name))

    async def end_decision(self, task: TracedTask, run: Any, output: Any) -> None:
        """The code of a conditional edge has decided."""
        await settle(run.on_chain_end(output))
        node = self._runs.nodes.get(task.id)
        if node is None:
            return
        async with self._runs.turn():  # edges of a node decide side by side, in threads of their own
            node.decisions -= 1
            is_last = node.decisions == 0
        if is_last:
            await self._runs.close_node(node)

    async def fail_decision(self, task: TracedTask, run: Any, error: BaseException) -> None:
        """The code of a conditional edge has raised."""
        await settle(run.on_chain_error(error))
        await self.fail_node(task, error)
