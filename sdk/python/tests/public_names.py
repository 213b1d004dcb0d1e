"""The public names of a library and their parameters, for comparison."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

MODULES: dict[str, str] = {
    "graph": "END START MessageGraph MessagesState StateGraph add_messages",
    "graph.message": "MessageGraph MessagesState REMOVE_ALL_MESSAGES add_messages push_message",
    "graph.state": "CompiledStateGraph StateGraph",
    "types": (
        "All CachePolicy CheckpointPayload CheckpointStreamPart CheckpointTask Checkpointer Command CustomStreamPart "
        "DebugPayload DebugStreamPart Durability GraphOutput Interrupt MessagesStreamPart Overwrite PregelTask "
        "RetryPolicy Send StateSnapshot StateUpdate StreamMode StreamPart StreamWriter TaskPayload TaskResultPayload "
        "TasksStreamPart TimeoutPolicy TracePolicy UpdatesStreamPart ValuesStreamPart interrupt"
    ),
    "errors": (
        "EmptyChannelError EmptyInputError ErrorCode GraphBubbleUp GraphDrained GraphInterrupt GraphRecursionError "
        "InvalidUpdateError NodeCancelledError NodeError NodeInterrupt NodeTimeoutError ParentCommand TaskNotFound "
        "UnknownInterruptError is_invalid_resume"
    ),
    "config": "get_config get_store get_stream_writer",
    "runtime": "ExecutionInfo RunControl Runtime get_runtime",
    "managed": "IsLastStep RemainingSteps",
    "constants": "END START TAG_HIDDEN TAG_NOSTREAM",
    "channels": ("AnyValue BinaryOperatorAggregate DeltaChannel EphemeralValue LastValue Topic UntrackedValue"),
    "prebuilt": "ToolNode tools_condition",
    "checkpoint.memory": "InMemorySaver MemorySaver",
    "cache.memory": "InMemoryCache",
}

METHODS: dict[str, str] = {
    "graph.StateGraph": (
        "__init__ add_conditional_edges add_edge add_node add_sequence compile set_conditional_entry_point "
        "set_entry_point set_finish_point set_node_defaults validate"
    ),
    "graph.state.CompiledStateGraph": (
        "abulk_update_state aclear_cache aget_graph aget_state aget_state_history aget_subgraphs ainvoke astream "
        "aupdate_state bulk_update_state clear_cache copy get_graph get_state get_state_history get_subgraphs invoke "
        "stream update_state with_config"
    ),
    "runtime.Runtime": "merge override patch_execution_info",
    "runtime.RunControl": "request_drain",
    "types.TimeoutPolicy": "__init__ coerce",
    "types.CachePolicy": "__init__",
    "types.Command": "__init__",
    "types.Interrupt": "__init__",
    "types.Overwrite": "__init__",
    "types.Send": "__init__",
    "errors.NodeTimeoutError": "__init__",
    "errors.GraphDrained": "__init__",
    "checkpoint.memory.InMemorySaver": "acopy_thread adelete_thread aprune copy_thread delete_thread prune",
}

TUPLES = ("types.PregelTask", "types.RetryPolicy", "types.StateSnapshot", "types.StateUpdate")


def _found(root: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{root}.{module}"), name)


def _parameters(call: Any) -> list[str]:
    parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    return [f"{p.name} {p.kind.name.lower()}" for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def read(root: str) -> dict[str, Any]:
    """All of the above, as far as the library has it."""
    names = {
        module: [n for n in listed.split() if hasattr(importlib.import_module(f"{root}.{module}"), n)]
        for module, listed in MODULES.items()
    }
    methods = {
        f"{kind}.{name}": _parameters(getattr(_found(root, kind), name))
        for kind, listed in METHODS.items()
        for name in listed.split()
        if hasattr(_found(root, kind), name)
    }
    return {"names": names, "methods": methods, "fields": {path: list(_found(root, path)._fields) for path in TUPLES}}
