"""The config, context and runtime of a node, from the run and from the assignment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import TASK_SEPARATOR
from graphd.declare.nodes import NodeDeclaration
from graphd.declare.program import Program
from graphd.names import public_name, public_thread
from graphd.runtime.info import ExecutionInfo, Runtime
from graphd.runtime.local_runs import LocalRun, find_store
from graphd.runtime.task import CurrentTask, Host
from graphd.runtime.wire_context import CALLED, CONFIGURABLE, read_wire_context
from graphd.worker.background_loop import find_loop
from graphd.worker.tokens import stream_tokens


@dataclass(frozen=True)
class AssignmentEnvironment:
    """The environment of an assignment; see graphd.runtime.task.NodeEnvironment.

    Most nodes ask for nothing, so it is made on request.
    """

    assignment: pb.TaskAssignment
    program: Program
    host: Host
    local: LocalRun | None
    node: NodeDeclaration | None

    def config(self) -> dict[str, Any]:
        return config_of(self.assignment, self.node, self.local)

    def runtime(self, config: dict[str, Any]) -> Runtime[Any]:
        assignment, local = self.assignment, self.local
        return Runtime(
            context=context_of(assignment, self.program, local),
            store=self._find_store(),
            stream_writer=self._write_custom,
            heartbeat=self.host.report_alive,
            previous=self.program.read_previous(assignment.channels),
            execution_info=ExecutionInfo(
                checkpoint_id=assignment.checkpoint.checkpoint_id,
                checkpoint_ns="|".join([*assignment.namespace, f"{public_name(assignment.node)}:{assignment.task_id}"]),
                task_id=assignment.task_id,
                thread_id=config["configurable"].get("thread_id"),
                run_id=assignment.run_id or None,
                node_attempt=assignment.attempt,
                node_first_attempt_time=assignment.logical_time.seconds or None,
            ),
            control=local.control if local else None,
        )

    def _find_store(self) -> Any:
        """The store of the outermost graph: graphs inside of it see it too."""
        outer = find_store(self.host.target, self.host.thread)
        return next((s for s in (outer, self.host.store, self.program.store) if s is not None), None)

    @property
    def cache(self) -> Any:
        return self.program.cache

    def find_loop(self) -> asyncio.AbstractEventLoop:
        return find_loop(self.local)

    def stream_tokens(self, task: CurrentTask, manager: Any = None) -> contextlib.AbstractContextManager[None]:
        # The client of a run that another process started may want the tokens.
        return stream_tokens(task, self.local is None or self.local.tokens, manager)

    def _write_custom(self, value: Any) -> None:
        self.host.emit_event("custom", "", value, False)


def config_of(assignment: pb.TaskAssignment, node: NodeDeclaration | None, local: LocalRun | None) -> dict[str, Any]:
    """The config that nodes see, shaped as LangGraph shapes it."""
    given: Mapping[str, Any] = local.config if local else {}
    name = public_name(assignment.node)
    namespace = "|".join([*assignment.namespace, f"{name}{TASK_SEPARATOR}{assignment.task_id}"])
    labels = {key: value for key, value in assignment.metadata.items() if not key.startswith("graphd.")}
    metadata: dict[str, Any] = labels | dict(given.get("metadata") or {})
    metadata |= {
        "langgraph_step": assignment.step,
        "langgraph_node": name,
        "langgraph_triggers": tuple(assignment.triggers),
        "langgraph_path": ("__pregel_push", 0) if assignment.HasField("send_input") else ("__pregel_pull", name),
        "langgraph_checkpoint_ns": namespace,
    }
    metadata |= dict(node.metadata) if node else {}
    carried = read_wire_context(assignment.context)
    layers = [carried.get(CONFIGURABLE, {}), dict(given.get("configurable") or {})]
    outer, inner = reversed(layers) if CALLED in carried else layers
    configurable = {"thread_id": public_thread(assignment.thread_id)} | outer | inner
    configurable |= {
        "checkpoint_ns": namespace,
        "checkpoint_id": None,
    }
    rest = {k: v for k, v in given.items() if k not in ("metadata", "configurable", "run_name", "run_id")}
    return {"tags": [], **rest, "metadata": metadata, "configurable": configurable}


def context_of(assignment: pb.TaskAssignment, program: Program, local: LocalRun | None) -> Any:
    """The context of the run, as the type that the graph declares for it."""
    schema = program.builder.context_schema
    carried = read_wire_context(assignment.context)
    if local is not None and local.context is not None and CALLED not in carried:
        value = local.context
    else:
        value = {k: v for k, v in carried.items() if k not in (CONFIGURABLE, CALLED)} or None
    if value is None or schema is None or not isinstance(value, Mapping):
        return value
    if hasattr(schema, "model_validate"):
        return schema.model_validate(dict(value))
    if hasattr(schema, "__dataclass_fields__"):
        return schema(**value)
    return dict(value)
