"""Graphs that are called from inside a node of another graph."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphd import codec
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.client.failures import node_error
from graphd.client.options import CallOptions
from graphd.client.overhear import Overheard
from graphd.client.run_request import carried_context, step_limit
from graphd.client.snapshots import values_of
from graphd.client.translate import FINAL, Item
from graphd.errors import GraphInterrupt
from graphd.runtime.task import CurrentTask
from graphd.types import Command
from graphd.worker import here
from graphd.worker.outcome import CalledCommand, update_object
from graphd.worker.surroundings import CALLED

if TYPE_CHECKING:
    from graphd.client.runs import Runs


def is_nested(task: CurrentTask, config: Mapping[str, Any] | None) -> bool:
    """A call belongs to the task unless it names a thread of its own."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return thread is None or thread == task.config["configurable"].get("thread_id")


def items(
    graph: Runs, task: CurrentTask, given: Any, config: Mapping[str, Any], options: CallOptions
) -> Iterator[Item]:
    """Runs the graph inside of the task, and yields what happens in it.

    The same goes to whoever follows the outer run with ``subgraphs=True``.
    """
    request = _request(graph, task, given, config, options)
    if FINAL in options.shape.modes and len(options.shape.modes) == 1:
        response = task.host.call(graph, request)
    else:
        if "messages" in options.shape.modes and (local := here.find(task.host.address, task.host.thread)) is not None:
            local.tokens = True
        overheard = Overheard(graph, task, request, config, options)
        yield from overheard.items()
        response = overheard.response()
    match response.WhichOneof("outcome"):
        case "output":
            if FINAL in options.shape.modes:
                yield Item(FINAL, (), values_of(graph.program, response.output))
        case "waiting":
            task.waiting.extend(response.waiting.interrupt_ids)
            raise GraphInterrupt(())
        case "failure":
            raise node_error(response.failure)
        case "command":
            raise CalledCommand(response.command)


async def aitems(
    graph: Runs, task: CurrentTask, given: Any, config: Mapping[str, Any], options: CallOptions
) -> AsyncIterator[Item]:
    """Like items, without blocking the loop."""
    found = items(graph, task, given, config, options)
    try:
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item
    finally:
        await asyncio.to_thread(found.close)  # type: ignore[attr-defined]


def _request(
    graph: Runs, task: CurrentTask, given: Any, config: Mapping[str, Any], options: CallOptions
) -> ws.CallGraphRequest:
    home = graph.attach(task.host.address)
    request = ws.CallGraphRequest(
        call_index=task.next_call(),
        graph=graph.program.name,
        graph_version=home.versions.get(graph.program.name, ""),
        interrupt_before=options.interrupt_before,
        interrupt_after=options.interrupt_after,
        persistence=graph.persistence,  # type: ignore[arg-type]
        step_limit=step_limit(config),
    )
    if (carried := _context(task, config, options)) is not None:
        request.context.CopyFrom(codec.payload(carried))
    if given is not None and not isinstance(given, Command):
        request.input.CopyFrom(codec.payload(update_object(given, graph.program)))
    return request


def _context(task: CurrentTask, config: Mapping[str, Any], options: CallOptions) -> dict[str, Any] | None:
    """What the called graph sees; None for the same as the calling node."""
    own = carried_context(options.context, config.get("configurable") or {})
    if own is None:
        return None
    if options.context is None:
        own = (carried_context(task.runtime.context, {}) or {}) | own
    return own | {CALLED: True}
