"""The runs that callback handlers have been told the beginning of, and not the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

from graphd.constants import TAG_HIDDEN, TASK_SEPARATOR
from graphd.errors import GraphdError, GraphInterrupt
from graphd.names import format_namespace, public_name
from graphd.packages import imported_attribute
from graphd.runtime.callbacks import bind_config, settle
from graphd.runtime.traced_runs import GraphRun, GraphState, Levels, NodeRun, TracedProgram, TracedTask
from graphd.threads import run_blocking

log = logging.getLogger("graphd.callbacks")


class OpenRuns:
    """The runs of one call: of its graph, of graphs that are nodes in it, and of other nodes.

    A graph that is a node is run by the server, task by task. Its run, and that of its
    node, begin with the first of its tasks, and end when the graph around it goes on or ends.
    """

    def __init__(self, root: GraphRun, loop: asyncio.AbstractEventLoop | None) -> None:
        self.root = root
        self.graphs: dict[Levels, GraphRun] = {root.levels: root}
        self.nodes: dict[str, NodeRun] = {}
        self._loop = loop
        self._lock = threading.RLock()
        self._loop_lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Tasks of a superstep begin side by side; what they begin and end together is done once."""
        if self._loop is None:
            with self._lock:
                yield
        else:
            async with self._loop_lock:
                yield

    async def open_node(self, graph: GraphRun, task: TracedTask, input: Any, *, hidden: bool = False) -> NodeRun:
        """Begins the run of a node."""
        child = graph.run.get_child(f"graph:step:{task.step}")
        child.add_tags([*task.tags, TAG_HIDDEN] if hidden else task.tags)
        child.add_metadata(dict(task.metadata))
        run = await settle(child.on_chain_start(None, input, name=task.node))
        self.nodes[task.id] = NodeRun(run, graph, task, task.decisions)
        return self.nodes[task.id]

    async def close_decided(self, node: NodeRun) -> None:
        """Ends the run of a node that has returned, unless conditional edges are to decide."""
        if node.decisions == 0:
            await self.close_node(node)

    async def fail_node(self, node: NodeRun, error: BaseException) -> None:
        """Ends the run of a node that has raised."""
        self.nodes.pop(node.task.id, None)
        node.graph.set_failure(error, node.task.step, node.task.id)
        await settle(node.run.on_chain_error(error))

    async def close_node(self, node: NodeRun) -> None:
        """Ends the run of a node that has returned."""
        self.nodes.pop(node.task.id, None)
        self._show_output(node.run, node.output)
        await settle(node.run.on_chain_end(node.output))

    async def graph_of(self, task: TracedTask) -> GraphRun:
        """The run of the graph that a task belongs to. It begins if it has not; graphs that are done end."""
        found = self.root
        for end in range(len(self.root.levels) + 1, len(task.levels) + 1):
            levels = task.levels[:end]
            inner = self.graphs.get(levels) or await self._open_graph(found, levels)
            if inner is None:
                break
            found = inner
        await self._close_before(found.levels, task.step)
        found.forget_failure(task)
        return found

    async def _open_graph(self, outer: GraphRun, levels: Levels) -> GraphRun | None:
        node, _, _ = levels[-1].partition(TASK_SEPARATOR)
        program = outer.program.child(public_name(node))
        if program is None:
            return None
        state = await self._read_state(outer.program, outer.levels)
        step, name = state.step + 1, public_name(node)
        await self._close_before(outer.levels, step)
        child = outer.run.get_child(f"graph:step:{step}")
        namespace = format_namespace(levels)
        about = {"langgraph_step": step, "langgraph_node": name, "langgraph_checkpoint_ns": namespace}
        child.add_metadata(about)
        node_run = await settle(child.on_chain_start(None, state.values, name=name))
        inner = node_run.get_child("seq:step:1")
        if "checkpoint_ns" not in inner.metadata:  # of the outermost, as in LangGraph
            inner.add_metadata({"checkpoint_ns": namespace})
        bind_config(inner, program.config)
        name = program.config.get("run_name") or program.name
        run = await settle(inner.on_chain_start(None, state.values, name=name))
        self.graphs[levels] = GraphRun(run, program, levels, node_run, step)
        return self.graphs[levels]

    async def _close_before(self, outer: Levels, step: int) -> None:
        """Ends the graphs that were nodes of an earlier superstep."""
        for graph in list(self.graphs.values()):
            if graph.levels[:-1] == outer and graph.node_run is not None and graph.step < step:
                await self.close_graph(graph, None)

    async def close_inside(self, graph: GraphRun, error: BaseException | None) -> None:
        """Ends what is open in a graph."""
        depth = len(graph.levels)
        for inner in list(self.graphs.values()):
            if inner.node_run is not None and graph.is_around(inner.levels) and len(inner.levels) == depth + 1:
                await self.close_graph(inner, error)
        for node in [n for n in self.nodes.values() if n.graph is graph]:
            await (self.close_node(node) if error is None else self.fail_node(node, error))

    async def close_ended(self, ends: Sequence[Levels]) -> None:
        """Ends the graphs around and in namespaces in which nothing runs any more."""
        for graph in sorted(self.graphs.values(), key=lambda graph: len(graph.levels)):
            is_ended = graph.node_run is not None and any(graph.is_around(levels) for levels in ends)
            running = any(graph.is_around(node.graph.levels) for node in list(self.nodes.values()))
            if is_ended and not running and graph.levels in self.graphs:
                await self.close_graph(graph, None)

    async def close_graph(self, graph: GraphRun, error: BaseException | None) -> None:
        """Ends the run of a graph that is a node, and that of the node."""
        await self.close_inside(graph, error)
        del self.graphs[graph.levels]
        state = None if graph.failure else await self._read_end(graph, error)
        if state is not None and state.is_done:
            await settle(graph.run.on_chain_end(state.values))
            self._show_output(graph.node_run, state.values)
            await settle(graph.node_run.on_chain_end(state.values))
            return
        error = graph.failure or error or GraphInterrupt(())
        self.graphs.get(graph.levels[:-1], self.root).set_failure(error, graph.step, "")
        await settle(graph.run.on_chain_error(error))
        await settle(graph.node_run.on_chain_error(error))

    async def _read_end(self, graph: GraphRun, error: BaseException | None) -> GraphState | None:
        """What a graph has come to; None when it is of no use to ask, because the call has broken off."""
        if error is None:
            return await self._read_state(graph.program, graph.levels)
        if isinstance(error, GraphdError) or not isinstance(error, Exception):
            return None
        return await self._read_state(graph.program, graph.levels)

    def _show_output(self, run: Any, output: Any) -> None:
        """Tells the handlers of astream_events and astream_log what a run has put out."""
        for handler in self.streaming_handlers(run):
            list(handler.tap_output_iter(run.run_id, iter([output])))

    def streaming_handlers(self, manager: Any) -> list[Any]:
        """The handlers of astream_events and astream_log."""
        kind = imported_attribute("langchain_core.tracers._streaming", "_StreamingCallbackHandler")
        return [h for h in manager.handlers if kind in type(h).__mro__] if self._loop is not None else []

    async def _read_state(self, program: TracedProgram, levels: Levels) -> GraphState:
        try:
            if self._loop is None:
                return program.read_state(levels)
            return await run_blocking(program.read_state, levels)
        except GraphdError as error:  # a call does not fail when its handlers are told less
            log.warning("callback handlers are not told the state of graph %s: %s", program.name, error)
            return GraphState(None, 0, True)
