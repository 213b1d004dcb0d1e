from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import event_pb2 as _event_pb2
from graphd._gen.v1 import graph_pb2 as _graph_pb2
from graphd._gen.v1 import interrupt_pb2 as _interrupt_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_KIND_UNSPECIFIED: _ClassVar[TaskKind]
    TASK_KIND_NODE: _ClassVar[TaskKind]
    TASK_KIND_ROUTER: _ClassVar[TaskKind]
    TASK_KIND_REDUCER: _ClassVar[TaskKind]
    TASK_KIND_ERROR_HANDLER: _ClassVar[TaskKind]
TASK_KIND_UNSPECIFIED: TaskKind
TASK_KIND_NODE: TaskKind
TASK_KIND_ROUTER: TaskKind
TASK_KIND_REDUCER: TaskKind
TASK_KIND_ERROR_HANDLER: TaskKind

class WorkerManifest(_message.Message):
    __slots__ = ("deployment", "build_id", "min_protocol", "max_protocol", "features", "nodes", "graphs")
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    MIN_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    MAX_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    deployment: str
    build_id: str
    min_protocol: int
    max_protocol: int
    features: _containers.RepeatedScalarFieldContainer[str]
    nodes: _containers.RepeatedCompositeFieldContainer[ServedNode]
    graphs: _containers.RepeatedCompositeFieldContainer[_graph_pb2.GraphSpec]
    def __init__(self, deployment: _Optional[str] = ..., build_id: _Optional[str] = ..., min_protocol: _Optional[int] = ..., max_protocol: _Optional[int] = ..., features: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Iterable[_Union[ServedNode, _Mapping]]] = ..., graphs: _Optional[_Iterable[_Union[_graph_pb2.GraphSpec, _Mapping]]] = ...) -> None: ...

class ServedNode(_message.Message):
    __slots__ = ("graph", "graph_version", "node")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    graph: str
    graph_version: str
    node: str
    def __init__(self, graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class TaskLease(_message.Message):
    __slots__ = ("token", "ttl")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    token: bytes
    ttl: _duration_pb2.Duration
    def __init__(self, token: _Optional[bytes] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TaskAssignment(_message.Message):
    __slots__ = ("lease", "kind", "thread_id", "run_id", "task_id", "attempt", "delivery", "graph", "graph_version", "node", "function", "branch", "namespace", "step", "stop_step", "checkpoint", "channels", "send_input", "context", "metadata", "journal", "failure", "reduction", "timeout", "idle_timeout", "emit", "trace", "random_seed", "logical_time", "triggers", "kept")
    class ChannelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _payload_pb2.Payload
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class TraceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LEASE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STOP_STEP_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    SEND_INPUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    REDUCTION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    IDLE_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    LOGICAL_TIME_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    lease: TaskLease
    kind: TaskKind
    thread_id: str
    run_id: str
    task_id: str
    attempt: int
    delivery: int
    graph: str
    graph_version: str
    node: str
    function: str
    branch: str
    namespace: _containers.RepeatedScalarFieldContainer[str]
    step: int
    stop_step: int
    checkpoint: _payload_pb2.CheckpointRef
    channels: _containers.MessageMap[str, _payload_pb2.Payload]
    send_input: _payload_pb2.Payload
    context: _payload_pb2.Payload
    metadata: _containers.ScalarMap[str, str]
    journal: Journal
    failure: _payload_pb2.Failure
    reduction: Reduction
    timeout: _duration_pb2.Duration
    idle_timeout: _duration_pb2.Duration
    emit: _containers.RepeatedScalarFieldContainer[_event_pb2.Channel]
    trace: _containers.ScalarMap[str, str]
    random_seed: int
    logical_time: _timestamp_pb2.Timestamp
    triggers: _containers.RepeatedScalarFieldContainer[str]
    kept: KeptValues
    def __init__(self, lease: _Optional[_Union[TaskLease, _Mapping]] = ..., kind: _Optional[_Union[TaskKind, str]] = ..., thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., attempt: _Optional[int] = ..., delivery: _Optional[int] = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., node: _Optional[str] = ..., function: _Optional[str] = ..., branch: _Optional[str] = ..., namespace: _Optional[_Iterable[str]] = ..., step: _Optional[int] = ..., stop_step: _Optional[int] = ..., checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., channels: _Optional[_Mapping[str, _payload_pb2.Payload]] = ..., send_input: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., context: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., journal: _Optional[_Union[Journal, _Mapping]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ..., reduction: _Optional[_Union[Reduction, _Mapping]] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., idle_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., emit: _Optional[_Iterable[_Union[_event_pb2.Channel, str]]] = ..., trace: _Optional[_Mapping[str, str]] = ..., random_seed: _Optional[int] = ..., logical_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., triggers: _Optional[_Iterable[str]] = ..., kept: _Optional[_Union[KeptValues, _Mapping]] = ...) -> None: ...

class KeptValues(_message.Message):
    __slots__ = ("keep", "use", "forget")
    class KeepEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    class UseEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    KEEP_FIELD_NUMBER: _ClassVar[int]
    USE_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    keep: _containers.ScalarMap[str, bytes]
    use: _containers.ScalarMap[str, bytes]
    forget: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, keep: _Optional[_Mapping[str, bytes]] = ..., use: _Optional[_Mapping[str, bytes]] = ..., forget: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Journal(_message.Message):
    __slots__ = ("entries", "drift", "drift_ignore")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    DRIFT_IGNORE_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[JournalEntry]
    drift: _interrupt_pb2.Drift
    drift_ignore: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, entries: _Optional[_Iterable[_Union[JournalEntry, _Mapping]]] = ..., drift: _Optional[_Union[_interrupt_pb2.Drift, str]] = ..., drift_ignore: _Optional[_Iterable[str]] = ...) -> None: ...

class JournalEntry(_message.Message):
    __slots__ = ("scope", "key", "index", "answer", "memo")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    MEMO_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    index: int
    answer: Answer
    memo: _payload_pb2.Payload
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., memo: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("interrupt_id", "value", "dismissed", "expired", "seen", "secret_seen")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DISMISSED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    SECRET_SEEN_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    value: _payload_pb2.Payload
    dismissed: _run_pb2.Dismissal
    expired: _empty_pb2.Empty
    seen: str
    secret_seen: str
    def __init__(self, interrupt_id: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., dismissed: _Optional[_Union[_run_pb2.Dismissal, _Mapping]] = ..., expired: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., seen: _Optional[str] = ..., secret_seen: _Optional[str] = ...) -> None: ...

class Reduction(_message.Message):
    __slots__ = ("channel", "current", "writes")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    channel: str
    current: _payload_pb2.Payload
    writes: _containers.RepeatedCompositeFieldContainer[_payload_pb2.Payload]
    def __init__(self, channel: _Optional[str] = ..., current: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., writes: _Optional[_Iterable[_Union[_payload_pb2.Payload, _Mapping]]] = ...) -> None: ...

class TaskUpdate(_message.Message):
    __slots__ = ("lease_token", "emit", "alive", "result")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    emit: Emit
    alive: _empty_pb2.Empty
    result: TaskResult
    def __init__(self, lease_token: _Optional[bytes] = ..., emit: _Optional[_Union[Emit, _Mapping]] = ..., alive: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., result: _Optional[_Union[TaskResult, _Mapping]] = ...) -> None: ...

class Emit(_message.Message):
    __slots__ = ("items", "dropped")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[EmitItem]
    dropped: int
    def __init__(self, items: _Optional[_Iterable[_Union[EmitItem, _Mapping]]] = ..., dropped: _Optional[int] = ...) -> None: ...

class EmitItem(_message.Message):
    __slots__ = ("channel", "name", "value", "durable")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    channel: _event_pb2.Channel
    name: str
    value: _payload_pb2.Payload
    durable: bool
    def __init__(self, channel: _Optional[_Union[_event_pb2.Channel, str]] = ..., name: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., durable: bool = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("completed", "interrupted", "failed", "cancelled", "used")
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    completed: TaskCompleted
    interrupted: TaskInterrupted
    failed: TaskFailed
    cancelled: TaskCancelled
    used: _containers.RepeatedCompositeFieldContainer[UsedAnswer]
    def __init__(self, completed: _Optional[_Union[TaskCompleted, _Mapping]] = ..., interrupted: _Optional[_Union[TaskInterrupted, _Mapping]] = ..., failed: _Optional[_Union[TaskFailed, _Mapping]] = ..., cancelled: _Optional[_Union[TaskCancelled, _Mapping]] = ..., used: _Optional[_Iterable[_Union[UsedAnswer, _Mapping]]] = ...) -> None: ...

class UsedAnswer(_message.Message):
    __slots__ = ("scope", "key", "index", "seen", "asked", "secret_seen")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    SECRET_SEEN_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    index: int
    seen: str
    asked: Ask
    secret_seen: str
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ..., seen: _Optional[str] = ..., asked: _Optional[_Union[Ask, _Mapping]] = ..., secret_seen: _Optional[str] = ...) -> None: ...

class TaskCompleted(_message.Message):
    __slots__ = ("update", "writes", "goto_targets", "to_parent", "cached")
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    GOTO_TARGETS_FIELD_NUMBER: _ClassVar[int]
    TO_PARENT_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    update: _payload_pb2.Payload
    writes: _containers.RepeatedCompositeFieldContainer[ChannelWrite]
    goto_targets: _containers.RepeatedCompositeFieldContainer[_payload_pb2.Goto]
    to_parent: bool
    cached: bool
    def __init__(self, update: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., writes: _Optional[_Iterable[_Union[ChannelWrite, _Mapping]]] = ..., goto_targets: _Optional[_Iterable[_Union[_payload_pb2.Goto, _Mapping]]] = ..., to_parent: bool = ..., cached: bool = ...) -> None: ...

class ChannelWrite(_message.Message):
    __slots__ = ("channel", "value", "overwrite")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    OVERWRITE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    value: _payload_pb2.Payload
    overwrite: bool
    def __init__(self, channel: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., overwrite: bool = ...) -> None: ...

class TaskInterrupted(_message.Message):
    __slots__ = ("asks", "waiting_interrupt_ids")
    ASKS_FIELD_NUMBER: _ClassVar[int]
    WAITING_INTERRUPT_IDS_FIELD_NUMBER: _ClassVar[int]
    asks: _containers.RepeatedCompositeFieldContainer[Ask]
    waiting_interrupt_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, asks: _Optional[_Iterable[_Union[Ask, _Mapping]]] = ..., waiting_interrupt_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Ask(_message.Message):
    __slots__ = ("scope", "key", "index", "reason", "message", "value", "response_schema", "ttl", "expiry_action", "default_response", "assignees", "drift", "drift_ignore", "people", "priority", "steps", "undo", "secret")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_ACTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    DRIFT_IGNORE_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    scope: str
    key: str
    index: int
    reason: str
    message: str
    value: _payload_pb2.Payload
    response_schema: _payload_pb2.Payload
    ttl: _duration_pb2.Duration
    expiry_action: _interrupt_pb2.ExpiryAction
    default_response: _payload_pb2.Payload
    assignees: _containers.RepeatedScalarFieldContainer[str]
    drift: _interrupt_pb2.Drift
    drift_ignore: _containers.RepeatedScalarFieldContainer[str]
    people: _interrupt_pb2.People
    priority: _interrupt_pb2.Priority
    steps: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Step]
    undo: _duration_pb2.Duration
    secret: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, scope: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., response_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., expiry_action: _Optional[_Union[_interrupt_pb2.ExpiryAction, str]] = ..., default_response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., assignees: _Optional[_Iterable[str]] = ..., drift: _Optional[_Union[_interrupt_pb2.Drift, str]] = ..., drift_ignore: _Optional[_Iterable[str]] = ..., people: _Optional[_Union[_interrupt_pb2.People, _Mapping]] = ..., priority: _Optional[_Union[_interrupt_pb2.Priority, str]] = ..., steps: _Optional[_Iterable[_Union[_interrupt_pb2.Step, _Mapping]]] = ..., undo: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., secret: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskFailed(_message.Message):
    __slots__ = ("type", "message", "stack", "non_retryable", "retry_delay", "cause", "details", "base_types")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CAUSE_UNSPECIFIED: _ClassVar[TaskFailed.Cause]
        CAUSE_USER_CODE: _ClassVar[TaskFailed.Cause]
        CAUSE_NON_DETERMINISTIC: _ClassVar[TaskFailed.Cause]
        CAUSE_TOO_LARGE: _ClassVar[TaskFailed.Cause]
        CAUSE_INVALID_UPDATE: _ClassVar[TaskFailed.Cause]
        CAUSE_NOT_SERVED: _ClassVar[TaskFailed.Cause]
    CAUSE_UNSPECIFIED: TaskFailed.Cause
    CAUSE_USER_CODE: TaskFailed.Cause
    CAUSE_NON_DETERMINISTIC: TaskFailed.Cause
    CAUSE_TOO_LARGE: TaskFailed.Cause
    CAUSE_INVALID_UPDATE: TaskFailed.Cause
    CAUSE_NOT_SERVED: TaskFailed.Cause
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    BASE_TYPES_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    stack: str
    non_retryable: bool
    retry_delay: _duration_pb2.Duration
    cause: TaskFailed.Cause
    details: _containers.ScalarMap[str, str]
    base_types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., stack: _Optional[str] = ..., non_retryable: bool = ..., retry_delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., cause: _Optional[_Union[TaskFailed.Cause, str]] = ..., details: _Optional[_Mapping[str, str]] = ..., base_types: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskCancelled(_message.Message):
    __slots__ = ("note",)
    NOTE_FIELD_NUMBER: _ClassVar[int]
    note: str
    def __init__(self, note: _Optional[str] = ...) -> None: ...
