"""CompiledStateGraph: runs graphs and reads their states."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import threading
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphd._gen.v1 import graph_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client import nested, run_request, states
from graphd.client.home import Home, address_of, attach, descendants
from graphd.client.running import Running
from graphd.client.server import unary
from graphd.client.shape import Collector, Shape
from graphd.client.snapshots import values_of
from graphd.client.threads import levels, wire_thread
from graphd.client.translate import Translator, filter_of
from graphd.graph.drawing import Drawing
from graphd.graph.program import Program
from graphd.runtime import RunControl
from graphd.runtime.task import current_task
from graphd.types import All, Command, StateSnapshot, StateUpdate
from graphd.worker import cache as node_cache
from graphd.worker.here import LocalRun

if TYPE_CHECKING:
    from graphd.graph.state import StateGraph


@dataclass(frozen=True)
class CompileOptions:
    """How a graph was compiled."""

    checkpointer: Any
    cache: Any
    store: Any
    interrupt_before: tuple[str, ...]
    interrupt_after: tuple[str, ...]
    name: str | None
    server: str | None
    version: str


class CompiledStateGraph:
    """A graph that can be run, under the methods that LangGraph users know."""

    def __init__(self, builder: StateGraph, options: CompileOptions) -> None:
        self.builder, self.compile_options = builder, options
        self.program = Program(
            builder,
            name=options.name,
            version=options.version,
            interrupt_before=options.interrupt_before,
            interrupt_after=options.interrupt_after,
            cache=options.cache,
            store=options.store,
        )
        self.config: dict[str, Any] = {}
        self._home: Home | None = None
        self._lock = threading.Lock()
        if options.server is not None:
            self.attach()

    @property
    def name(self) -> str:
        """The name that the graph was given."""
        return self.program.public_name

    @property
    def checkpointer(self) -> Any:
        """The saver the graph was compiled with."""
        return self.compile_options.checkpointer

    @property
    def persistence(self) -> int:
        """How the graph keeps its state when it is part of another one."""
        if self.checkpointer is True:
            return graph_pb2.SUBGRAPH_PERSISTENCE_PERSIST
        if self.checkpointer is False:
            return graph_pb2.SUBGRAPH_PERSISTENCE_DISABLED
        return graph_pb2.SUBGRAPH_PERSISTENCE_INHERIT

    @property
    def step_timeout(self) -> float | None:
        """Seconds that one superstep may take."""
        return self.program.step_timeout

    @step_timeout.setter
    def step_timeout(self, seconds: float | None) -> None:
        self.program.step_timeout = seconds
        self.detach()

    def with_config(self, config: Mapping[str, Any] | None = None, **more: Any) -> CompiledStateGraph:
        """The same graph with defaults for the config of its calls."""
        bound = copy.copy(self)
        bound.config = merge_configs(merge_configs(self.config, config), more)
        return bound

    # The server.

    def attach(self) -> Home:
        """Connects as worker and client; done by the first call otherwise."""
        with self._lock:
            if self._home is None:
                address, _, _ = address_of(self.checkpointer, self.compile_options.server)
                self._home = attach(self, address)
            return self._home

    def detach(self, grace: float = 0.0) -> None:
        """Takes no more work; lets running nodes finish for so many seconds."""
        with self._lock:
            home, self._home = self._home, None
        if home is not None:
            home.session.close(grace)

    def serve(self) -> None:
        """Works for the server until the process is interrupted."""
        self.attach()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        self.detach(grace=20)

    def _persistent(self) -> bool:
        if self.checkpointer is True:
            raise RuntimeError("checkpointer=True is for graphs inside of others; a root graph needs a saver")
        return address_of(self.checkpointer, self.compile_options.server)[2]

    def _thread(self, config: Mapping[str, Any]) -> str | None:
        thread = (config.get("configurable") or {}).get("thread_id")
        if not self._persistent():
            return None
        if thread is None:
            if self.checkpointer is None:
                return None
            raise ValueError("the graph has a checkpointer, so config['configurable'] needs a thread_id")
        return wire_thread(address_of(self.checkpointer, self.compile_options.server)[1], thread)

    # Running.

    def _plan(self, given: Any, config: Mapping[str, Any] | None, options: _Options) -> Running:
        modes = options.shape.modes
        merged = merge_configs(self.config, config)
        thread = self._thread(merged)
        if thread is None and isinstance(given, Command) and given.resume is not None:
            raise RuntimeError("Command(resume=...) needs a checkpointer: nothing was kept to go on from")
        home = self.attach()
        temporary = thread is None
        wire = thread or f"tmp.{uuid.uuid4().hex}"
        call = run_request.Call(
            program=self.program,
            version=home.versions.get(self.program.name, ""),
            thread=wire,
            config=merged,
            context=options.context,
            interrupt_before=_nodes(options.interrupt_before),
            interrupt_after=_nodes(options.interrupt_after),
            event_filter=filter_of(
                modes, subgraphs=options.subgraphs, some_keys=options.output_keys is not None and "values" in modes
            ),
        )
        request = run_request.request_of(call, given)

        def read_state(at: Sequence[str]) -> Any:
            wanted = ts.GetStateRequest(thread_id=wire)
            wanted.at.namespace.extend(levels("|".join(at)))
            return values_of(self.program, unary(home.server.stubs.threads.GetState, wanted).values)

        programs = {p.name: p for p in [*descendants(self.program), self.program]}
        translator = Translator(
            modes, programs, self.program, merged, options.output_keys, read_state, subgraphs=options.subgraphs
        )
        local = LocalRun(config=merged, context=options.context, control=options.control)
        return Running(home, self.program, request, translator, local, wire, temporary)

    def stream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Iterator[Any]:
        """Runs the graph and yields what happens, as it happens.

        ``durability`` is accepted: graphd always stores before it shows.
        """
        del print_mode, durability, debug, older
        shape = Shape(stream_mode, subgraphs=subgraphs, version=version)
        if (task := current_task()) is not None and nested.is_nested(self, task, config):
            yield from nested.stream(self, task, input, config, shape, interrupt_before, interrupt_after)
            return
        options = _Options(context, output_keys, interrupt_before, interrupt_after, control, subgraphs, shape)
        for item in self._plan(input, config, options).items():
            yield shape.show(item)

    async def astream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> AsyncIterator[Any]:
        """Like stream, for async programs; async nodes run on this loop."""
        del print_mode, durability, debug, older
        shape = Shape(stream_mode, subgraphs=subgraphs, version=version)
        if (task := current_task()) is not None and nested.is_nested(self, task, config):
            items = await asyncio.to_thread(
                lambda: list(nested.stream(self, task, input, config, shape, interrupt_before, interrupt_after))
            )
            for shown in items:
                yield shown
            return
        options = _Options(context, output_keys, interrupt_before, interrupt_after, control, subgraphs, shape)
        running = await asyncio.to_thread(self._plan, input, config, options)
        running.local.variables = contextvars.copy_context()
        async for item in running.aitems():
            yield shape.show(item)

    def invoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Any:
        """Runs the graph to its end or to its questions; returns the state.

        Open questions are under ``__interrupt__``.
        """
        task = current_task()
        nests = task is not None and nested.is_nested(self, task, config)
        collector = Collector(stream_mode, version, nested=nests)
        for part in self.stream(
            input,
            config,
            context=context,
            stream_mode=collector.modes,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            control=control,
            **older,
        ):
            collector.add(part)
        return collector.result()

    async def ainvoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Any:
        """Like invoke, for async programs."""
        task = current_task()
        nests = task is not None and nested.is_nested(self, task, config)
        collector = Collector(stream_mode, version, nested=nests)
        async for part in self.astream(
            input,
            config,
            context=context,
            stream_mode=collector.modes,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            control=control,
            **older,
        ):
            collector.add(part)
        return collector.result()

    def _output_keys(self, given: str | Sequence[str] | None) -> str | Sequence[str] | None:
        output = self.builder.output
        if given is not None or output.is_root or set(output.channels()) >= set(self.program.channels):
            return given
        return list(output.channels())

    # States.

    def _states(self, config: Mapping[str, Any]) -> states.States:
        merged = merge_configs(self.config, config)
        if not self._persistent():
            raise ValueError("No checkpointer set")
        thread = self._thread(merged)
        if thread is None:
            raise ValueError("config['configurable'] needs a thread_id")
        programs = {p.name: p for p in [*descendants(self.program), self.program]}
        return states.States(self.attach(), self.program, programs, thread, merged)

    def get_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread: the newest, or that of a checkpoint."""
        return self._states(config).get(subgraphs=subgraphs)

    async def aget_state(self, config: Mapping[str, Any], *, subgraphs: bool = False) -> StateSnapshot:
        """Like get_state."""
        return await asyncio.to_thread(self.get_state, config, subgraphs=subgraphs)

    def get_state_history(
        self,
        config: Mapping[str, Any],
        *,
        filter: dict[str, Any] | None = None,
        before: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The checkpoints of a thread, newest first."""
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
        listed = await asyncio.to_thread(
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
        """Writes to the state as if a node had done it; returns its config."""
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self,
        config: Mapping[str, Any],
        values: Any,
        as_node: str | None = None,
        task_id: str | None = None,
    ) -> dict[str, Any]:
        """Like update_state."""
        return await asyncio.to_thread(self.update_state, config, values, as_node, task_id)

    def bulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Writes several supersteps to the state, each of one or more nodes."""
        return self._states(config).update(supersteps)

    async def abulk_update_state(
        self, config: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
    ) -> dict[str, Any]:
        """Like bulk_update_state."""
        return await asyncio.to_thread(self.bulk_update_state, config, supersteps)

    # The graph itself.

    def get_graph(self, config: Mapping[str, Any] | None = None, *, xray: int | bool = False) -> Drawing:
        """The shape of the graph, to draw it."""
        del config
        return Drawing(self.program, int(xray) if xray is not True else 99)

    def get_subgraphs(
        self, *, namespace: str | None = None, recurse: bool = False
    ) -> Iterator[tuple[str, CompiledStateGraph]]:
        """The graphs that are nodes of this one."""
        for name, child in self.program.children().items():
            if namespace is None or namespace == name:
                yield name, child
            if recurse:
                below = None if namespace is None else namespace.removeprefix(f"{name}|")
                for path, grandchild in child.get_subgraphs(namespace=below, recurse=True):
                    yield f"{name}|{path}", grandchild

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forgets the cached results of nodes, of all by default."""
        if self.program.cache is not None:
            for node in nodes or self.program.nodes:
                self.program.cache.drop(node_cache.prefix_of(self.program, node))


@dataclass(frozen=True)
class _Options:
    """The arguments of a call that do not name what to run."""

    context: Any
    output_keys: str | Sequence[str] | None
    interrupt_before: All | Sequence[str] | None
    interrupt_after: All | Sequence[str] | None
    control: RunControl | None
    subgraphs: bool
    shape: Shape


def _nodes(given: All | Sequence[str] | None) -> tuple[str, ...]:
    return ("*",) if given == "*" else tuple(given or ())


def merge_configs(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any]:
    """Two configs as one; metadata and configurable are merged key by key."""
    merged = dict(base or {}) | {k: v for k, v in (over or {}).items() if v is not None}
    for part in ("configurable", "metadata"):
        if part in (base or {}) and part in (over or {}):
            merged[part] = dict((base or {})[part] or {}) | dict((over or {})[part] or {})
    return merged
