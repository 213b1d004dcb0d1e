"""Graphs that are called from inside a node of another graph."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Protocol

from graphd import codec
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.client.called_graph_stream import CalledGraphStream
from graphd.client.connection import GraphConnection
from graphd.client.items import FINAL, Item
from graphd.client.options import CallOptions
from graphd.client.run_request import step_limit
from graphd.client.snapshots import values_of
from graphd.declare.program import Program
from graphd.declare.writes import update_object
from graphd.errors import GraphInterrupt
from graphd.runtime import local_runs
from graphd.runtime.called_command import CalledCommand
from graphd.runtime.failures import node_error
from graphd.runtime.task import CurrentTask
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
    graph: CalledGraph, task: CurrentTask, given: Any, config: Mapping[str, Any], options: CallOptions
) -> Iterator[Item]:
    """Runs the graph inside of the task, and yields what happens in it.

    Followers of the outer run with ``subgraphs=True`` get the same.
    """
    connection = graph.attach(*task.host.target)
    request = _build_request(graph, connection, task, given, config, options)
    if FINAL in options.stream_format.modes and len(options.stream_format.modes) == 1:
        response = task.host.call_graph(request)
    else:
        if (
            "messages" in options.stream_format.modes
            and (local := local_runs.find_call(task.host.target, task.host.thread)) is not None
        ):
            local.tokens = True
        stream = CalledGraphStream(connection, graph.program, task, request, config, options)
        yield from stream.stream_items()
        response = stream.result()
    match response.WhichOneof("outcome"):
        case "output":
            if FINAL in options.stream_format.modes:
                yield Item(FINAL, (), values_of(graph.program, response.output))
        case "waiting":
            task.waiting.extend(response.waiting.interrupt_ids)
            raise GraphInterrupt(())
        case "failure":
            raise node_error(response.failure)
        case "command":
            raise CalledCommand(response.command)


async def arun_nested(
    graph: CalledGraph, task: CurrentTask, given: Any, config: Mapping[str, Any], options: CallOptions
) -> AsyncIterator[Item]:
    """Like run_nested, without blocking the loop."""
    found = run_nested(graph, task, given, config, options)
    try:
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item
    finally:
        await asyncio.to_thread(found.close)  # type: ignore[attr-defined]


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
        step_limit=step_limit(config),
    )
    if (carried := _build_context(task, config, options)) is not None:
        request.context.CopyFrom(codec.to_payload(carried))
    if given is not None and not isinstance(given, Command):
        request.input.CopyFrom(codec.to_payload(update_object(given, graph.program)))
    return request


def _build_context(task: CurrentTask, config: Mapping[str, Any], options: CallOptions) -> dict[str, Any] | None:
    """What the called graph sees; None for the same as the calling node."""
    own = build_wire_context(options.context, config.get("configurable") or {})
    if own is None:
        return None
    if options.context is None:
        own = (build_wire_context(task.runtime.context, {}) or {}) | own
    return own | {CALLED: True}
