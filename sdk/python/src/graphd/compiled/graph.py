"""Pregel and CompiledStateGraph: run graphs, read and write their states, draw them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from graphd.client import states
from graphd.client.options import merge_configs
from graphd.compiled.hints import keeps_no_threads, names_no_thread
from graphd.compiled.schema_graph import SchemaGraph
from graphd.declare.builder import Builder
from graphd.declare.options import CompileOptions
from graphd.drawing.drawing import Drawing
from graphd.threads import run_blocking
from graphd.values.parameters import ContextT, InputT, OutputT, Parametrized, StateT
from graphd.values.state import StateSnapshot, StateUpdate


class Pregel(SchemaGraph, Parametrized[StateT, ContextT, InputT, OutputT]):
    """Every graph that can be run, for annotations and isinstance. Only ``compile`` and ``entrypoint`` make one.

    ``Pregel[State, Context, Input, Output]`` says its types to type checkers.
    """

    def __init__(self, *parts: object, **options: object) -> None:
        raise TypeError(
            "Pregel is not made of nodes and channels: the server runs the supersteps, and has the channels. "
            "Instead: graphd.graph.StateGraph(…).compile(), or graphd.func.entrypoint"
        )

    # States.

    def _states(self, config: Mapping[str, Any]) -> states.ThreadStates:
        merged = merge_configs(self.config, config)
        if not self._is_persistent():
            raise keeps_no_threads(ValueError("No checkpointer set"))
        thread = self._thread_of(merged)
        if thread is None:
            raise names_no_thread(ValueError("config['configurable'] needs a thread_id"))
        return states.ThreadStates(self.connect(), self.program, thread, merged)

    def get_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread: the newest, or that of the ``checkpoint_id`` in the config.

        ``next`` says which nodes are due, and ``tasks`` how far they have come.
        A thread that there is not has an empty state. ``subgraphs`` puts the
        states of subgraphs into the tasks that wait for them.
        """
        return self._states(config).get(subgraphs=subgraphs)

    async def aget_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """Like get_state."""
        return await run_blocking(self.get_state, config, subgraphs=subgraphs)

    def get_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The checkpoints of a thread, newest first.

        ``filter`` keeps those with this metadata, ``before`` those that are
        older than the checkpoint of a config, ``limit`` so many.
        """
        return self._states(config).history(filter or {}, before, limit)

    async def aget_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Like get_state_history."""
        listed = await run_blocking(
            lambda: list(self.get_state_history(config, filter=filter, before=before, limit=limit))
        )
        for snapshot in listed:
            yield snapshot

    def update_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Writes to the state as if a node had done it; returns the config of the checkpoint.

        ``as_node`` may be left out when it is clear which node ran last;
        otherwise InvalidUpdateError is raised, as for keys that can't take the
        values. Open questions are dropped with a DroppedQuestions warning.
        """
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Like update_state."""
        return await run_blocking(self.update_state, config, values, as_node, task_id)

    def bulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Writes several supersteps to the state, each of one or more nodes."""
        return self._states(config).update(supersteps)

    async def abulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Like bulk_update_state."""
        return await run_blocking(self.bulk_update_state, config, supersteps)

    # The graph itself.

    def get_graph(self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False) -> Drawing:
        """The shape of the graph, to draw it."""
        del config
        return Drawing(self.program, int(xray) if xray is not True else 99)

    def get_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> Iterator[tuple[str, CompiledStateGraph]]:
        """The graphs that are nodes of this one."""
        for name, child in self.program.graphs.items():
            if namespace is None or namespace == name:
                yield name, child
            if recurse:
                below = None if namespace is None else namespace.removeprefix(f"{name}|")
                for path, grandchild in child.get_subgraphs(namespace=below, recurse=True):
                    yield f"{name}|{path}", grandchild

    async def aget_graph(self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False) -> Drawing:
        """Like get_graph."""
        return self.get_graph(config, xray=xray)

    async def aget_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> AsyncIterator[tuple[str, CompiledStateGraph]]:
        """Like get_subgraphs."""
        for name, graph in self.get_subgraphs(namespace=namespace, recurse=recurse):
            yield name, graph

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forgets the cached results of nodes, of all by default."""
        if self.program.cache is not None:
            for node in nodes or self.program.nodes:
                self.program.cache.drop(self.program.cache_prefix(node))

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Like clear_cache."""
        self.clear_cache(nodes)


class CompiledStateGraph(Pregel[StateT, ContextT, InputT, OutputT]):
    """A graph that can be run, under the methods that LangGraph users know.

    ``CompiledStateGraph[State, Context, Input, Output]`` says its types to type checkers.
    """

    def __init__(self, builder: Builder, options: CompileOptions) -> None:
        SchemaGraph.__init__(self, builder, options)  # that of Pregel refuses


__all__ = ["CompiledStateGraph", "Pregel"]
