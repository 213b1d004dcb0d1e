"""One call of a graph as callback handlers see it: the runs of the graph, its nodes and its conditional edges.

A graph that is a node is run by the server, task by task. Its run, and that of its node,
begin with the first of its tasks, and end when the graph around it goes on or ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

from graphd.constants import START, TAG_HIDDEN, TASK_SEPARATOR
from graphd.errors import GraphdError, GraphInterrupt
from graphd.names import format_namespace, public_name
from graphd.packages import imported_attribute
from graphd.runtime.callbacks import run_on_loop, run_plain, settle

T = TypeVar("T")
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
class _GraphRun:
    """The run of a graph. Of a graph that is a node it has the run of the node, and the superstep of that."""

    run: Any
    program: TracedProgram
    levels: Levels
    node_run: Any = None
    step: int = 0
    failure: BaseException | None = None
    failed_task: tuple[int, str] = (0, "")

    def set_failure(self, error: BaseException, step: int, task: str) -> None:
        self.failure, self.failed_task = error, (step, task)

    def forget_failure(self, task: TracedTask) -> None:
        """A later superstep, another try or a handler: what has failed does not fail the graph."""
        step, failed = self.failed_task
        if task.is_handler or task.step > step or task.id == failed:
            self.failure = None


@dataclass
class _NodeRun:
    run: Any
    graph: _GraphRun
    task: TracedTask
    output: Any = None
    decisions: int = 0


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
    base: Levels = ()
    output: Any = None
    _graphs: dict[Levels, _GraphRun] = field(default_factory=dict, init=False)
    _nodes: dict[str, _NodeRun] = field(default_factory=dict, init=False)
    _lock: Any = field(default_factory=threading.RLock, init=False)
    _loop_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    # The call.

    async def start(self) -> None:
        """The run of the graph begins."""
        run = await settle(self.manager.on_chain_start(None, self.input, name=self.run_name, run_id=self.run_id))
        self._root = _GraphRun(run, self.program, self.base)
        self._graphs[self.base] = self._root

    def set_base(self, levels: Levels) -> None:
        """Says where in its thread a graph is that was called inside of another one, before its first task begins."""
        self._graphs = {levels: self._root}
        self.base = self._root.levels = levels

    async def end_inner(self, ends: Sequence[Levels]) -> None:
        """Ends the graphs around and in namespaces, because the caller is about to see what came of them."""
        if not ends or len(self._graphs) == 1:
            return
        async with self._turn():
            for graph in sorted(self._graphs.values(), key=lambda graph: len(graph.levels)):
                around = any(levels[: len(graph.levels)] == graph.levels for levels in ends)
                if around and graph.node_run is not None and graph.levels in self._graphs:
                    await self._close_graph(graph, None)

    def keep_output(self, state: Any) -> None:
        """Says what the call has come to, before it ends."""
        keys = self.output_keys
        if keys is None or not isinstance(state, dict):
            self.output = state
        else:
            self.output = state.get(keys) if isinstance(keys, str) else {k: state[k] for k in keys if k in state}

    async def finish(self) -> None:
        """The graph has come to its end or to questions."""
        async with self._turn():
            await self._close_inside(self._root, None)
        await settle(self._root.run.on_chain_end(self.output))

    async def fail(self, error: BaseException) -> None:
        """The call raises."""
        async with self._turn():
            await self._close_inside(self._root, error)
        await settle(self._root.run.on_chain_error(error))

    def run_steps(self, steps: Coroutine[Any, Any, T]) -> T | None:
        """Runs a method of this in a thread that is not that of the loop."""
        return run_plain(steps) if self.loop is None else run_on_loop(steps, self.loop)

    async def arun_steps(self, steps: Coroutine[Any, Any, T]) -> T | None:
        """Runs a method of this on any loop."""
        if self.loop is None:
            return run_plain(steps)
        if self.loop is asyncio.get_running_loop():
            return await steps
        return await asyncio.to_thread(run_on_loop, steps, self.loop)

    # Tasks.

    async def start_node(self, task: TracedTask, input: Any) -> Any:
        """A node begins; returns the manager of the runs inside of it."""
        async with self._turn():
            if (before := self._nodes.get(task.id)) is not None:  # another process was to decide its edges
                await self._close_node(before)
            graph = await self._graph_of(task)
            return (await self._open_node(graph, task, input)).run.get_child("seq:step:1")

    async def end_node(self, task: TracedTask, output: Any) -> None:
        """A node has returned. Its run goes on while conditional edges decide."""
        node = self._nodes.get(task.id)
        if node is not None:
            node.output = output
            await self._close_decided(node)

    async def fail_node(self, task: TracedTask, error: BaseException) -> None:
        """A node, or an edge of it, has raised."""
        node = self._nodes.pop(task.id, None)
        if node is not None:
            node.graph.set_failure(error, task.step, task.id)
            await settle(node.run.on_chain_error(error))

    async def start_decision(self, task: TracedTask, name: str, place: int, input: Any) -> Any:
        """The code of a conditional edge begins; returns its run, None when the node has none here."""
        async with self._turn():
            node = self._nodes.get(task.id)
            if node is None and task.node == START:
                graph = await self._graph_of(task)
                given = self.input if graph is self._root else input
                node = await self._open_node(graph, task, given, hidden=True)
                node.output = given
        if node is None:
            return None
        child = node.run.get_child(f"seq:step:{place}")
        child.add_tags([*task.tags, TAG_HIDDEN] if task.node == START else task.tags)
        return await settle(child.on_chain_start(None, input, name=name))

    async def end_decision(self, task: TracedTask, run: Any, output: Any) -> None:
        """The code of a conditional edge has decided."""
        await settle(run.on_chain_end(output))
        node = self._nodes.get(task.id)
        if node is not None:
            node.decisions -= 1
            await self._close_decided(node)

    async def fail_decision(self, task: TracedTask, run: Any, error: BaseException) -> None:
        """The code of a conditional edge has raised."""
        await settle(run.on_chain_error(error))
        await self.fail_node(task, error)

    # Inside.

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Tasks of a superstep begin side by side; what they begin and end together is done once."""
        if self.loop is None:
            with self._lock:
                yield
        else:
            async with self._loop_lock:
                yield

    async def _open_node(self, graph: _GraphRun, task: TracedTask, input: Any, *, hidden: bool = False) -> _NodeRun:
        child = graph.run.get_child(f"graph:step:{task.step}")
        child.add_tags([*task.tags, TAG_HIDDEN] if hidden else task.tags)
        child.add_metadata(dict(task.metadata))
        run = await settle(child.on_chain_start(None, input, name=task.node))
        self._nodes[task.id] = _NodeRun(run, graph, task, decisions=task.decisions)
        return self._nodes[task.id]

    async def _close_decided(self, node: _NodeRun) -> None:
        if node.decisions == 0:
            await self._close_node(node)

    async def _close_node(self, node: _NodeRun) -> None:
        self._nodes.pop(node.task.id, None)
        self._show_output(node.run, node.output)
        await settle(node.run.on_chain_end(node.output))

    async def _graph_of(self, task: TracedTask) -> _GraphRun:
        """The run of the graph that a task belongs to. It begins if it has not; graphs that are done end."""
        found = self._root
        for end in range(len(self.base) + 1, len(task.levels) + 1):
            levels = task.levels[:end]
            inner = self._graphs.get(levels) or await self._open_graph(found, levels)
            if inner is None:
                break
            found = inner
        await self._close_before(found.levels, task.step)
        found.forget_failure(task)
        return found

    async def _open_graph(self, outer: _GraphRun, levels: Levels) -> _GraphRun | None:
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
        run = await settle(inner.on_chain_start(None, state.values, name=program.name))
        self._graphs[levels] = _GraphRun(run, program, levels, node_run, step)
        return self._graphs[levels]

    async def _close_before(self, outer: Levels, step: int) -> None:
        """Ends the graphs that were nodes of an earlier superstep."""
        for graph in list(self._graphs.values()):
            if graph.levels[:-1] == outer and graph.node_run is not None and graph.step < step:
                await self._close_graph(graph, None)

    async def _close_inside(self, graph: _GraphRun, error: BaseException | None) -> None:
        """Ends what is open in a graph."""
        depth = len(graph.levels)
        for inner in list(self._graphs.values()):
            if inner.node_run is not None and inner.levels[:depth] == graph.levels and len(inner.levels) == depth + 1:
                await self._close_graph(inner, error)
        for node in [n for n in self._nodes.values() if n.graph is graph]:
            await (self._close_node(node) if error is None else self.fail_node(node.task, error))

    async def _close_graph(self, graph: _GraphRun, error: BaseException | None) -> None:
        await self._close_inside(graph, error)
        del self._graphs[graph.levels]
        state = None if graph.failure else await self._read_end(graph, error)
        if state is not None and state.is_done:
            await settle(graph.run.on_chain_end(state.values))
            self._show_output(graph.node_run, state.values)
            await settle(graph.node_run.on_chain_end(state.values))
            return
        error = graph.failure or error or GraphInterrupt(())
        self._graphs.get(graph.levels[:-1], self._root).set_failure(error, graph.step, "")
        await settle(graph.run.on_chain_error(error))
        await settle(graph.node_run.on_chain_error(error))

    async def _read_end(self, graph: _GraphRun, error: BaseException | None) -> GraphState | None:
        """What a graph has come to; None when it is of no use to ask, because the call has broken off."""
        if error is None:
            return await self._read_state(graph.program, graph.levels)
        if isinstance(error, GraphdError) or not isinstance(error, Exception):
            return None
        with contextlib.suppress(GraphdError):
            return await self._read_state(graph.program, graph.levels)
        return None

    def _show_output(self, run: Any, output: Any) -> None:
        """Tells the handlers of astream_events and astream_log what a run has put out."""
        for handler in self._streaming_handlers(run):
            list(handler.tap_output_iter(run.run_id, iter([output])))

    def shows_pieces(self, manager: Any) -> bool:
        """Somebody wants to see results as they come."""
        return any(self._streaming_handlers(manager))

    def _streaming_handlers(self, manager: Any) -> list[Any]:
        kind = imported_attribute("langchain_core.tracers._streaming", "_StreamingCallbackHandler")
        return [h for h in manager.handlers if kind in type(h).__mro__] if self.loop is not None else []

    async def _read_state(self, program: TracedProgram, levels: Levels) -> GraphState:
        if self.loop is None:
            return program.read_state(levels)
        return await asyncio.to_thread(program.read_state, levels)


__all__ = ["GraphState", "TracedGraph", "TracedProgram", "TracedTask"]
