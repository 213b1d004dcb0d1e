"""The public names of a library and their parameters, for comparison."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

MODULES: dict[str, str] = {
    "graph": "END START MessageGraph MessagesState StateGraph add_messages",
    "graph.message": "MessageGraph MessagesState REMOVE_ALL_MESSAGES add_messages push_message",
    "graph.state": "CompiledStateGraph END START StateGraph",
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
    "func": "entrypoint task",
    "config": "get_config get_store get_stream_writer",
    "runtime": "ExecutionInfo RunControl Runtime get_runtime",
    "managed": "IsLastStep RemainingSteps",
    "managed.is_last_step": "IsLastStep RemainingSteps RemainingStepsManager",
    "constants": "END START TAG_HIDDEN TAG_NOSTREAM",
    "channels": ("AnyValue BinaryOperatorAggregate DeltaChannel EphemeralValue LastValue Topic UntrackedValue"),
    "pregel": "Pregel",
    "prebuilt": "InjectedState InjectedStore ToolNode ToolRuntime ValidationNode create_react_agent tools_condition",
    "prebuilt.tool_validator": "ValidationNode",
    "prebuilt.chat_agent_executor": (
        "AgentState AgentStatePydantic AgentStateWithStructuredResponse AgentStateWithStructuredResponsePydantic "
        "create_react_agent create_tool_calling_executor"
    ),
    "prebuilt.tool_node": "InjectedState InjectedStore ToolCallRequest ToolNode ToolRuntime tools_condition",
    "prebuilt.interrupt": "ActionRequest HumanInterrupt HumanInterruptConfig HumanResponse",
    "checkpoint.memory": "InMemorySaver MemorySaver",
    "cache.memory": "InMemoryCache",
    "store.base": (
        "BaseStore Embeddings GetOp IndexConfig InvalidNamespaceError Item ListNamespacesOp MatchCondition "
        "NamespaceMatchType NamespacePath Op PutOp SearchItem SearchOp TTLConfig ensure_embeddings get_text_at_path "
        "tokenize_path validate_op_namespace"
    ),
    "store.memory": "InMemoryStore",
    "warnings": (
        "LangGraphDeprecatedSinceV05 LangGraphDeprecatedSinceV10 LangGraphDeprecatedSinceV11 LangGraphDeprecationWarning"
    ),
}

_GRAPH_METHODS = (
    "abatch abatch_as_completed abulk_update_state aclear_cache aget_graph aget_state aget_state_history "
    "aget_subgraphs ainvoke astream atransform aupdate_state batch batch_as_completed bulk_update_state clear_cache "
    "config_schema copy get_config_jsonschema get_context_jsonschema get_graph get_input_jsonschema get_input_schema "
    "get_name get_output_jsonschema get_output_schema get_state get_state_history get_subgraphs invoke stream "
    "transform update_state with_config"
)

METHODS: dict[str, str] = {
    "graph.StateGraph": (
        "__init__ add_conditional_edges add_edge add_node add_sequence compile set_conditional_entry_point "
        "set_entry_point set_finish_point set_node_defaults validate"
    ),
    "graph.state.CompiledStateGraph": _GRAPH_METHODS,
    "pregel.Pregel": _GRAPH_METHODS,
    "func.entrypoint": "__call__ __init__",
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
    "prebuilt.ToolNode": "__init__ ainvoke invoke",
    "prebuilt.ValidationNode": "__init__",
    "warnings.LangGraphDeprecatedSinceV10": "__init__",
    "warnings.LangGraphDeprecationWarning": "__init__",
    "store.base.BaseStore": (
        "abatch adelete aget alist_namespaces aput asearch batch delete get list_namespaces put search"
    ),
    "store.memory.InMemoryStore": "__init__",
    "checkpoint.memory.InMemorySaver": "acopy_thread adelete_thread aprune copy_thread delete_thread prune",
}

FUNCTIONS = ("prebuilt.create_react_agent", "prebuilt.tools_condition")

TUPLES = (
    "types.PregelTask",
    "types.RetryPolicy",
    "types.StateSnapshot",
    "types.StateUpdate",
    "store.base.GetOp",
    "store.base.ListNamespacesOp",
    "store.base.MatchCondition",
    "store.base.PutOp",
    "store.base.SearchOp",
)


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
    methods |= {path: _parameters(_found(root, path)) for path in FUNCTIONS}
    return {"names": names, "methods": methods, "fields": {path: list(_found(root, path)._fields) for path in TUPLES}}
