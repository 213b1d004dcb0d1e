"""Graphs that are called from inside a node of another graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphd import codec
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.client.failures import node_error
from graphd.client.run_request import step_limit
from graphd.client.shape import Shape
from graphd.client.snapshots import values_of
from graphd.client.translate import Item
from graphd.errors import GraphInterrupt
from graphd.runtime.task import CurrentTask
from graphd.types import Command
from graphd.worker.outcome import CalledCommand, update_object

if TYPE_CHECKING:
    from graphd.client.compiled import CompiledStateGraph


def is_nested(graph: CompiledStateGraph, task: CurrentTask, config: Mapping[str, Any] | None) -> bool:
    """A call belongs to the task unless it names a thread of its own."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return thread is None or thread == task.config["configurable"].get("thread_id")


def stream(
    graph: CompiledStateGraph,
    task: CurrentTask,
    given: Any,
    config: Mapping[str, Any] | None,
    shape: Shape,
    interrupt_before: Any,
    interrupt_after: Any,
) -> Iterator[Any]:
    """Runs the graph inside of the task; yields its final state.

    Its events go to whoever follows the outer run with ``subgraphs=True``.
    """
    home = graph.attach()
    request = ws.CallGraphRequest(
        call_index=task.next_call(),
        graph=graph.program.name,
        graph_version=home.versions.get(graph.program.name, ""),
        interrupt_before=_nodes(interrupt_before),
        interrupt_after=_nodes(interrupt_after),
        persistence=graph.persistence,  # type: ignore[arg-type]
        step_limit=step_limit(config or {}),
    )
    if given is not None and not isinstance(given, Command):
        request.input.CopyFrom(codec.payload(update_object(given, graph.program)))
    response = task.host.call(graph, request)
    match response.WhichOneof("outcome"):
        case "output":
            state = values_of(graph.program, response.output)
            if "values" in shape.modes:
                yield shape.show(Item("values", (), state))
        case "waiting":
            task.waiting.extend(response.waiting.interrupt_ids)
            raise GraphInterrupt(())
        case "failure":
            raise node_error(response.failure)
        case "command":
            raise CalledCommand(response.command)


def _nodes(given: Any) -> Sequence[str]:
    return ("*",) if given == "*" else tuple(given or ())
