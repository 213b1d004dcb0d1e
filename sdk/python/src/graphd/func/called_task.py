"""What a task sees as the task at hand: that of its caller, under its own name."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphd.constants import NAMESPACE_SEPARATOR, TASK_SEPARATOR
from graphd.runtime.info import Runtime
from graphd.runtime.task import CurrentTask, current_task

PUSH = "__pregel_push"
"""What triggers a task that code calls, as LangGraph shows it."""


@dataclass(frozen=True)
class CalledEnvironment:
    """The config and the runtime of a task; see graphd.runtime.task.NodeEnvironment."""

    caller: CurrentTask
    name: str
    identifier: str
    index: int

    def config(self) -> dict[str, Any]:
        outer = self.caller.config
        around = outer["metadata"]
        metadata = around | {
            "langgraph_node": self.name,
            "langgraph_triggers": (PUSH,),
            "langgraph_path": (PUSH, around["langgraph_path"], self.index, True),
            "langgraph_checkpoint_ns": self._namespace(around["langgraph_checkpoint_ns"]),
        }
        configurable = outer["configurable"] | {"checkpoint_ns": metadata["langgraph_checkpoint_ns"]}
        return {**outer, "metadata": metadata, "configurable": configurable}

    def runtime(self, config: dict[str, Any]) -> Runtime[Any]:
        namespace = config["metadata"]["langgraph_checkpoint_ns"]
        outer = self.caller.runtime
        return outer.patch_execution_info(checkpoint_ns=namespace, task_id=self.identifier, node_attempt=1).override(
            stream_writer=_then_note_progress(outer.stream_writer), heartbeat=_then_note_progress(outer.heartbeat)
        )

    def _namespace(self, around: str) -> str:
        return f"{around}{NAMESPACE_SEPARATOR}{self.name}{TASK_SEPARATOR}{self.identifier}"

    @property
    def cache(self) -> Any:
        return self.caller.environment.cache

    def find_loop(self) -> asyncio.AbstractEventLoop:
        return self.caller.environment.find_loop()

    def stream_tokens(self, task: CurrentTask, manager: Any = None) -> contextlib.AbstractContextManager[None]:
        return self.caller.environment.stream_tokens(task, manager)


def _then_note_progress(call: Callable[..., None]) -> Callable[..., None]:
    def wrapper(*given: Any) -> None:
        call(*given)
        if (task := current_task()) is not None:
            task.note_progress()

    return wrapper


def build_called_task(caller: CurrentTask, name: str, identifier: str, index: int) -> CurrentTask:
    """The task at hand for the code of a task that another one calls."""
    return CurrentTask(
        host=caller.host,
        replay=caller.replay,
        environment=CalledEnvironment(caller, name, identifier, index),
        depth=caller.depth,
        waiting=caller.waiting,
        pushed=caller.pushed,
        root=caller.root or caller,
    )


__all__ = ["PUSH", "build_called_task"]
