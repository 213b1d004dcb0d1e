"""The values that a program and the graph exchange, under LangGraph's names."""

from typing import TYPE_CHECKING

from graphd.compatibility.imports import explain_absent_names
from graphd.runtime.ask import interrupt
from graphd.values.command import Command, Interrupt, Overwrite, Send
from graphd.values.literals import All, Checkpointer, Durability, StreamMode, StreamWriter
from graphd.values.parts import (
    CheckpointPayload,
    CheckpointStreamPart,
    CheckpointTask,
    CustomStreamPart,
    DebugPayload,
    DebugStreamPart,
    MessagesStreamPart,
    StreamPart,
    TaskPayload,
    TaskResultPayload,
    TasksStreamPart,
    UpdatesStreamPart,
    ValuesStreamPart,
)
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy
from graphd.values.state import GraphOutput, PregelTask, StateSnapshot, StateUpdate

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = [
    "All",
    "CachePolicy",
    "CheckpointPayload",
    "CheckpointStreamPart",
    "CheckpointTask",
    "Checkpointer",
    "Command",
    "CustomStreamPart",
    "DebugPayload",
    "DebugStreamPart",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "MessagesStreamPart",
    "Overwrite",
    "PregelTask",
    "RetryPolicy",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TaskPayload",
    "TaskResultPayload",
    "TasksStreamPart",
    "TimeoutPolicy",
    "TracePolicy",
    "UpdatesStreamPart",
    "ValuesStreamPart",
    "interrupt",
]
