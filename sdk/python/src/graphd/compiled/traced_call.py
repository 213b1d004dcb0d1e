"""What callback handlers are told of a call of a compiled graph."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphd.client.connection import GraphConnection
from graphd.client.states import state_at
from graphd.declare.program import Program
from graphd.runtime.callbacks import configure_manager
from graphd.runtime.traced_graph import TracedGraph
from graphd.runtime.traced_runs import GraphState


@dataclass(frozen=True)
class ProgramInThread:
    """A graph whose runs are traced; see graphd.runtime.traced_runs.TracedProgram."""

    program: Program
    connection: GraphConnection
    thread: str
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.program.public_name

    def child(self, node: str) -> ProgramInThread | None:
        found = self.program.children.get(node)
        if found is None:
            return None
        return ProgramInThread(found.program, self.connection, self.thread, found.config)

    def read_state(self, levels: Sequence[str]) -> GraphState:
        return state_at(self.connection, self.program, self.thread, levels)


def trace_call(
    program: ProgramInThread, given: Any, config: Mapping[str, Any], loop: asyncio.AbstractEventLoop | None
) -> TracedGraph | None:
    """The runs of a call, about to begin; None without handlers."""
    listened_inside = _has_listeners(program.program)
    manager = configure_manager(config, is_async=loop is not None, listened_inside=listened_inside)
    if manager is None:
        return None
    if "ls_integration" not in manager.metadata:
        manager.add_metadata({"ls_integration": "graphd"})
    name = config.get("run_name") or program.name
    return TracedGraph(program, manager, given, name, _read_run_id(config.get("run_id")), loop)


def _has_listeners(program: Program) -> bool:
    """A graph that is a node has handlers of its own."""
    inside = program.children.values()
    return any(graph.config.get("callbacks") or _has_listeners(graph.program) for graph in inside)


def _read_run_id(given: Any) -> uuid.UUID | None:
    """The id of the run for handlers, which know UUIDs only."""
    if given is None or isinstance(given, uuid.UUID):
        return given
    try:
        return uuid.UUID(str(given))
    except ValueError:
        return None


__all__ = ["ProgramInThread", "trace_call"]
