"""Graphs that are called from inside a node of another graph."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from typing import Any, Protocol

from graphd import codec
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.client.called_graph_stream import CalledGraphStream, called_namespace
from graphd.client.connection import GraphConnection
from graphd.client.items import FINAL, Item, select_keys
from graphd.client.items_in_thread import iterate_in_thread
from graphd.client.options import CallOptions
from graphd.client.run_request import step_limit
from graphd.client.snapshots import values_of
from graphd.client.traced_items import atrace_items, trace_items
from graphd.declare.program import Program
from graphd.declare.writes import build_update_payload, update_object
from graphd.errors import GraphInterrupt
from graphd.runtime import local_runs
from graphd.runtime.called_command import CalledCommand
from graphd.runtime.failures import node_error
from graphd.runtime.task import CurrentTask
from graphd.runtime.traced_graph import TracedGraph
from graphd.runtime.wire_context import CALLED, build_wire_context
from graphd.security import Security
from graphd.values.command import Command


class CalledGraph(Protocol):
    """What has to be known of a graph that a node calls."""

    program: Program

    @property
    def persistence(self) -> int:
        """How it keeps its state inside of the calling graph."""

    def attach(self, server: str, security: Security) -> GraphConnection:
        """Makes this process work for the graph in a server, where its nodes run too."""


def is_nested(task: CurrentTask, config: Mapping[str, Any] | None) -> bool:
    """A call belongs to the task unless it names a thread of its own."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return thread is None or thread == task.config["configurable"].get("thread_id")


def run_nested(
    graph: CalledGraph,
    task: CurrentTask,
    given: Any,
    config: Mapping[str, Any],
    options: CallOptions,
    traced: TracedGraph | None,
) -> Iterator[Item]:
    """Runs the graph inside of the task, and yields what happens in it.

    Followers of the outer run with ``subgraphs=True`` get the same.
    """
    with local_runs.share_store(task.host.target, task.host.thread, task.runtime.store):
        yield from trace_items(traced, _stream_items(graph, task, given, config, options, traced))


def _stream_items(
    graph: CalledGraph,
    task: CurrentTask,
    given: Any,
    config: Mapping[str, Any],
    options: CallOptions,
    traced: TracedGraph | None,
) -> Generator[Item, None, None]:
    connection = graph.attach(*task.host.target)
    request = _build_request(graph, connection, task, given, config, options)
    with _register_traced(task, traced, request):
        response = yield from _call_graph(graph, connection, task, request, config, options)
    match response.WhichOneof("outcome"):
        case "output":
            values = values_of(graph.program, response.output)
            if traced is not None:
                traced.keep_output(values)
            if FINAL in options.stream_format.modes:
                yield Item(FINAL, (), select_keys(values, options.output_keys))
        case "waiting":
            task.waiting.extend(response.waiting.interrupt_ids)
            raise GraphInterrupt(())
        case "failure":
            raise node_error(response.failure)
        case "command":
            raise CalledCommand(response.command)


@contextlib.contextmanager
def _register_traced(task: CurrentTask, traced: TracedGraph | None, request: ws.CallGraphRequest) -> Iterator[None]:
    """Lets the tasks of the called graph find whom to tell, where the outermost caller is in this process."""
    local = local_runs.find_call(task.host.target, task.host.thread, task.host.run) if traced is not None else None
    if local is None or traced is None:
        yield
        return
    base = tuple(called_namespace(task, request))
    traced.set_base(base)
    local.traced[base] = traced
    try:
        yield
    finally:
        del local.traced[base]


def _call_graph(
    graph: CalledGraph,
    connection: GraphConnection,
    task: CurrentTask,
    request: ws.CallGraphRequest,
    config: Mapping[str, Any],
    options: CallOptions,
) -> Generator[Item, None, ws.CallGraphResponse]:
    if FINAL in options.stream_format.modes and len(options.stream_format.modes) == 1:
        response: ws.CallGraphResponse = task.host.call_graph(request)
        return response
    if (
        "messages" in options.stream_format.modes
        and (local := local_runs.find_call(task.host.target, task.host.thread, task.host.run)) is not None
    ):
        local.tokens = True
    stream = CalledGraphStream(connection, graph.program, task, request, config, options)
    yield from stream.stream_items()
    return stream.result()


async def arun_nested(
    graph: CalledGraph,
    task: CurrentTask,
    given: Any,
    config: Mapping[str, Any],
    options: CallOptions,
    traced: TracedGraph | None,
) -> AsyncGenerator[Item, None]:
    """Like run_nested, without blocking the loop."""
    with local_runs.share_store(task.host.target, task.host.thread, task.runtime.store):
        found = iterate_in_thread(_stream_items(graph, task, given, config, options, traced))
        async with contextlib.aclosing(atrace_items(traced, found)) as items:
            async for item in items:
                yield item


def _build_request(
    graph: CalledGraph,
    connection: GraphConnection,
    task: CurrentTask,
    given: Any,
    config: Mapping[str, Any],
    options: CallOptions,
) -> ws.CallGraphRequest:
    request = ws.CallGraphRequest(
        call_index=task.next_call(),
        graph=graph.program.name,
        graph_version=connection.version(graph.program.name),
        interrupt_before=options.interrupt_before,
        interrupt_after=options.interrupt_after,
        persistence=graph.persistence,  # type: ignore[arg-type]
        step_limit=step_limit(config, graph.program),
    )
    if (carried := _build_context(task, config, options)) is not None:
        request.context.CopyFrom(codec.to_payload(carried))
    if given is not None and not isinstance(given, Command):
        request.input.CopyFrom(build_update_payload(update_object(given, graph.program)))
    return request


def _build_context(task: CurrentTask, config: Mapping[str, Any], options: CallOptions) -> dict[str, Any] | None:
    """What the called graph sees; None for the same as the calling node."""
    own = build_wire_context(options.context, config.get("configurable") or {})
    if own is None:
        return None
    if options.context is None:
        own = (build_wire_context(task.runtime.context, {}) or {}) | own
    return own | {CALLED: True}
