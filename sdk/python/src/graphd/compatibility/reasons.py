"""Why names of LangGraph are absent or differ: one table.

``docs/python.md`` and the errors of imports are made from it. What is there needs no entry: the table of the page is
generated from the modules as they are (``tools/langgraph_names.py``).
"""

from __future__ import annotations

from typing import NamedTuple


class Absence(NamedTuple):
    """Why a name is absent, and what to use instead."""

    why: str
    instead: str
    """"" when a program goes without."""

    def __str__(self) -> str:
        return f"{self.why}. Instead: {self.instead}" if self.instead else f"{self.why}. Programs go without"


_BUILDER = Absence(
    "the server runs the supersteps, so no node subscribes to channels",
    "graphd.graph.StateGraph, whose add_node reads and writes keys of the state, and whose add_edge says what follows",
)
_CHANNELS = Absence(
    "the server has the channels; those that join branches are made by the edges", "add_edge([…], node), defer=True"
)
_STORED = Absence(
    "the server stores checkpoints, in its own form", "graphd.InMemorySaver, or compile(server=…) and get_state_history"
)
_SERVER_STORES = Absence(
    "the server has the store", "serve --store sqlite:graphd.db or redis://…, and compile(server=…)"
)
_SERIALIZED = Absence("values are stored as JSON, and read by the annotations of the state", "annotations of the state")
_INTERNAL = Absence("it is a part of LangGraph's loop that programs do not call", "")
_TYPING = Absence("it is a type variable of LangGraph's own annotations", "typing.TypeVar")
_STREAM = Absence(
    "streams yield items, and are not projected by transformers",
    "stream(…, stream_mode=[…]) or graphd.Client().runs.stream",
)
_CALLBACKS = Absence(
    "a run may go on in another process, where a callback is not", "stream_mode='tasks', or runs.watch"
)
_LATER = "it is not in this version"
_STORE = Absence(
    "stores are classes of their own, and LangGraph's fit", "compile(store=…) with that of langgraph.store"
)
_REMOTE = Absence("a server is called with typed calls, not as a graph", "graphd.Client, or compile(…, worker=False)")
_UI = Absence("no component of a user interface is kept in the state", "graphd.config.get_stream_writer")

ABSENT: dict[str, dict[str, Absence]] = {
    "cache.base": {"*": Absence("results are cached in the worker", "graphd.cache.memory.InMemoryCache")},
    "cache.redis": {"*": Absence("results are cached in the worker", "graphd.cache.memory.InMemoryCache")},
    "callbacks": {"*": _CALLBACKS},
    "channels": {"LastValueAfterFinish NamedBarrierValue NamedBarrierValueAfterFinish": _CHANNELS},
    "channels.last_value": {"LastValueAfterFinish": _CHANNELS},
    "channels.named_barrier_value": {"*": _CHANNELS},
    "checkpoint.base": {
        "BaseCheckpointSaver": _STORED,
        "EmptyChannelError": Absence("it is in another module", "graphd.errors.EmptyChannelError"),
        "*": _STORED,
    },
    "checkpoint.base.id": {"*": Absence("the server makes the ids of checkpoints", "uuid.uuid4")},
    "checkpoint.memory": {
        "PersistentDict": Absence("the server keeps threads in files", "graphd.dev(store='sqlite:x.db')"),
        "logger": Absence("it is a part of LangGraph's own code", "logging.getLogger('graphd.client')"),
    },
    "checkpoint.serde.base": {"*": _SERIALIZED},
    "checkpoint.serde.event_hooks": {"*": _SERIALIZED},
    "checkpoint.serde.jsonplus": {
        "EMPTY_BYTES EXT_CONSTRUCTOR_KW_ARGS EXT_CONSTRUCTOR_POS_ARGS EXT_CONSTRUCTOR_SINGLE_ARG EXT_DELTA_SNAPSHOT "
        "EXT_METHOD_SINGLE_ARG EXT_NUMPY_ARRAY EXT_PYDANTIC_V1 EXT_PYDANTIC_V2 InvalidModuleError LC_REVIVER "
        "logger": _SERIALIZED
    },
    "checkpoint.serde.types": {"*": _SERIALIZED},
    "checkpoint.postgres": {"*": _SERVER_STORES},
    "checkpoint.redis": {"*": _SERVER_STORES},
    "checkpoint.sqlite": {"*": _SERVER_STORES},
    "constants": {"CONF CONFIG_KEY_CHECKPOINTER TASKS": _INTERNAL},
    "graph.ui": {"*": _UI},
    "managed.base": {"*": Absence("managed values are those of graphd.managed alone", "a key of the state")},
    "prebuilt": {
        "ToolCallTransformer": _STREAM,
    },
    "prebuilt.tool_node": {
        "ContextT StateT": _TYPING,
        "*": Absence("it is a text or a helper of LangGraph's ToolNode", "ToolNode(handle_tool_errors=…)"),
    },
    "pregel": {
        "NodeBuilder": _BUILDER,
        "ChannelWriteEntry": Absence(
            "a node writes what it returns, and LangGraph does not have the name in this module either",
            "return {key: value}, without the keys that stay as they are; the reducer of a key maps what is written",
        ),
    },
    "pregel.debug": {"*": _INTERNAL},
    "pregel.main": {"NodeBuilder": _BUILDER},
    "pregel.protocol": {
        "PregelProtocol": Absence("all graphs are of one class", "graphd.pregel.Pregel"),
        "StreamProtocol": _INTERNAL,
    },
    "pregel.remote": {
        "RemoteException": Absence(
            "failures have classes of their own", "graphd.errors.RemoteNodeError and GraphdError"
        ),
        "RemoteGraph": _REMOTE,
    },
    "pregel.types": {
        "PregelExecutableTask": _INTERNAL,
        "default_retry_on": Absence("it is what RetryPolicy does by itself", "graphd.types.RetryPolicy()"),
    },
    "runtime": {
        "BaseUser ServerInfo": Absence(
            "the server tells nodes no caller", "Run.started_by and Question.responder of graphd.Client"
        )
    },
    "store.base.batch": {"*": _STORE},
    "store.base.embed": {"*": _STORE},
    "store.memory": {"logger": Absence("it is a part of LangGraph's own code", "")},
    "store.postgres": {"*": _STORE},
    "store.redis": {"*": _STORE},
    "store.sqlite": {"*": _STORE},
    "stream": {"*": _STREAM},
    "stream.run_stream": {"*": _STREAM},
    "stream.stream_channel": {"*": _STREAM},
    "stream.transformers": {"*": _STREAM},
    "types": {
        "PregelExecutableTask": _INTERNAL,
        "ensure_valid_checkpointer": _INTERNAL,
        "omit_payload": Absence("graphd traces no values", ""),
    },
    "typing": {"*": _TYPING},
    "version": {"*": Absence("the version is that of the package", "importlib.metadata.version('graphd')")},
}
"""By module below langgraph: names that are absent, and why. "*" is each other name of the module that is."""

MOVED: dict[str, str] = {
    "channels.any_value": "channels",
    "channels.base": "channels",
    "channels.binop": "channels",
    "channels.delta": "channels",
    "channels.ephemeral_value": "channels",
    "channels.last_value": "channels",
    "channels.topic": "channels",
    "channels.untracked_value": "channels",
    "pregel.main": "pregel",
    "pregel.types": "types",
}
"""Modules whose names are in another module of graphd."""

_OF_LOOP = "config_specs stream_channels_asis stream_channels_list"
_NO_RUNNABLE = Absence("the node is no Runnable of LangChain; it has invoke and ainvoke", "a graph with this node")
_UNCHANGED = Absence("a compiled graph does not change", "the builder")

ABSENT_MEMBERS: dict[str, dict[str, Absence]] = {
    "cache.memory.InMemoryCache": {"*": Absence("only the worker reads and writes it", "clear_cache of the graph")},
    "checkpoint.memory.InMemorySaver": {
        "get aget get_tuple aget_tuple list alist": Absence(
            "the server has the checkpoints, and not in LangGraph's form",
            "get_state and get_state_history of the graph",
        ),
        "*": _STORED,
    },
    "graph.state.CompiledStateGraph": {
        _OF_LOOP: _INTERNAL,
        "attach_branch attach_edge attach_node validate": _UNCHANGED,
    },
    "prebuilt.ToolNode": {
        "*": _NO_RUNNABLE,
        "tools_by_name": Absence(_LATER, "the list of tools that it was made of"),
    },
    "prebuilt.ValidationNode": {"*": _NO_RUNNABLE},
    "pregel.Pregel": {_OF_LOOP: _INTERNAL, "validate": _UNCHANGED},
    "prebuilt.ToolRuntime": {"emit_output_delta": Absence(_LATER, "graphd.config.get_stream_writer")},
    "types.Interrupt": {"from_ns": Absence("the server makes the ids of questions", "Interrupt.id")},
}
"""By class: members that are absent, and why. "*" is each other member that is."""

MEMBERS_OF: dict[str, Absence] = {
    "channels.": Absence("the server has the values of channels", "get_state of the graph"),
}
"""By the beginning of a class: why members are absent that have no entry of their own."""

_SAVER = "names a server; no `factory`; no `serde` but a `JsonPlusSerializer`, which changes nothing"

DIFFERS: dict[str, str] = {
    "func.task": "the first argument is named `func`, and is positional",
    "cache.memory.InMemoryCache": "no `serde`: results are kept as the JSON that they are sent as",
    "checkpoint.memory.InMemorySaver": _SAVER,
    "checkpoint.memory.MemorySaver": _SAVER,
    "checkpoint.serde.encrypted.EncryptedSerializer": (
        "the class of langgraph-checkpoint, for `GraphdSaver`; "
        "`InMemorySaver` refuses it: [the server encrypts](encryption.md)"
    ),
    "checkpoint.serde.jsonplus.JsonPlusSerializer": (
        "the class of langgraph-checkpoint, for `GraphdSaver`; `InMemorySaver` stores JSON all the same"
    ),
    "graph.state.CompiledStateGraph": "made by `compile` alone",
    "managed.is_last_step.RemainingStepsManager.get": "takes `step` and `stop`",
    "prebuilt.ToolNode": "no Runnable of LangChain",
    "prebuilt.ToolRuntime": "no `tools`, `execution_info`, `server_info`: see `graphd.runtime.get_runtime`",
    "prebuilt.tool_node.ToolRuntime": "no `tools`, `execution_info`, `server_info`: see `graphd.runtime.get_runtime`",
    "prebuilt.ValidationNode": "no Runnable of LangChain; other words for wrong arguments",
    "prebuilt.tool_validator.ValidationNode": "no Runnable of LangChain; other words for wrong arguments",
    "pregel.Pregel": "for annotations and `isinstance`: made by `compile` and `entrypoint` alone",
    "types.Interrupt": "`replaces` and `differs` besides",
    "types.interrupt": "the server checks answers by the schema; more arguments besides",
}
"""Names and members that are there, and take or do something else."""
