from google.protobuf import duration_pb2 as _duration_pb2
from graphd._gen.v1 import graph_pb2 as _graph_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import worker_task_pb2 as _worker_task_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConnectRequest(_message.Message):
    __slots__ = ("hello", "credit", "update", "beat", "nack", "goodbye", "complete", "batch")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    BEAT_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    credit: Credit
    update: _worker_task_pb2.TaskUpdate
    beat: Beat
    nack: Nack
    goodbye: Goodbye
    complete: CompleteTaskRequest
    batch: ConnectRequestBatch
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., update: _Optional[_Union[_worker_task_pb2.TaskUpdate, _Mapping]] = ..., beat: _Optional[_Union[Beat, _Mapping]] = ..., nack: _Optional[_Union[Nack, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ..., complete: _Optional[_Union[CompleteTaskRequest, _Mapping]] = ..., batch: _Optional[_Union[ConnectRequestBatch, _Mapping]] = ...) -> None: ...

class ConnectRequestBatch(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[ConnectRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[ConnectRequest, _Mapping]]] = ...) -> None: ...

class ConnectResponse(_message.Message):
    __slots__ = ("welcome", "task", "cancel", "beat_ack", "drain", "throttle", "completed", "renewed", "batch")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    BEAT_ACK_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    task: _worker_task_pb2.TaskAssignment
    cancel: CancelTask
    beat_ack: BeatAck
    drain: Drain
    throttle: Throttle
    completed: Completed
    renewed: _worker_task_pb2.TaskLease
    batch: ConnectResponseBatch
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., task: _Optional[_Union[_worker_task_pb2.TaskAssignment, _Mapping]] = ..., cancel: _Optional[_Union[CancelTask, _Mapping]] = ..., beat_ack: _Optional[_Union[BeatAck, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., throttle: _Optional[_Union[Throttle, _Mapping]] = ..., completed: _Optional[_Union[Completed, _Mapping]] = ..., renewed: _Optional[_Union[_worker_task_pb2.TaskLease, _Mapping]] = ..., batch: _Optional[_Union[ConnectResponseBatch, _Mapping]] = ...) -> None: ...

class ConnectResponseBatch(_message.Message):
    __slots__ = ("responses",)
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[ConnectResponse]
    def __init__(self, responses: _Optional[_Iterable[_Union[ConnectResponse, _Mapping]]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("worker_id", "manifest", "held_leases", "labels", "credit", "kept_bytes")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    HELD_LEASES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    KEPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    manifest: _worker_task_pb2.WorkerManifest
    held_leases: _containers.RepeatedScalarFieldContainer[bytes]
    labels: _containers.ScalarMap[str, str]
    credit: Credit
    kept_bytes: int
    def __init__(self, worker_id: _Optional[str] = ..., manifest: _Optional[_Union[_worker_task_pb2.WorkerManifest, _Mapping]] = ..., held_leases: _Optional[_Iterable[bytes]] = ..., labels: _Optional[_Mapping[str, str]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., kept_bytes: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("total_slots", "per_node", "revision")
    class PerNodeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TOTAL_SLOTS_FIELD_NUMBER: _ClassVar[int]
    PER_NODE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    total_slots: int
    per_node: _containers.ScalarMap[str, int]
    revision: int
    def __init__(self, total_slots: _Optional[int] = ..., per_node: _Optional[_Mapping[str, int]] = ..., revision: _Optional[int] = ...) -> None: ...

class Beat(_message.Message):
    __slots__ = ("number", "running")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    number: int
    running: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, number: _Optional[int] = ..., running: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Nack(_message.Message):
    __slots__ = ("lease_token", "reason", "retry_delay", "missing")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    reason: str
    retry_delay: _duration_pb2.Duration
    missing: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, lease_token: _Optional[bytes] = ..., reason: _Optional[str] = ..., retry_delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., missing: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("released", "reason")
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    released: _containers.RepeatedScalarFieldContainer[bytes]
    reason: str
    def __init__(self, released: _Optional[_Iterable[bytes]] = ..., reason: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("session_id", "protocol", "beat_interval", "lease_ttl", "renewed", "lost", "max_message_bytes", "max_payload_bytes", "max_result_bytes", "graphs", "server_version", "features", "undecided")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    BEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    LEASE_TTL_FIELD_NUMBER: _ClassVar[int]
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    UNDECIDED_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    protocol: int
    beat_interval: _duration_pb2.Duration
    lease_ttl: _duration_pb2.Duration
    renewed: _containers.RepeatedCompositeFieldContainer[_worker_task_pb2.TaskLease]
    lost: _containers.RepeatedScalarFieldContainer[bytes]
    max_message_bytes: int
    max_payload_bytes: int
    max_result_bytes: int
    graphs: _containers.RepeatedCompositeFieldContainer[GraphRegistration]
    server_version: str
    features: _containers.RepeatedScalarFieldContainer[str]
    undecided: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, session_id: _Optional[str] = ..., protocol: _Optional[int] = ..., beat_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lease_ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., renewed: _Optional[_Iterable[_Union[_worker_task_pb2.TaskLease, _Mapping]]] = ..., lost: _Optional[_Iterable[bytes]] = ..., max_message_bytes: _Optional[int] = ..., max_payload_bytes: _Optional[int] = ..., max_result_bytes: _Optional[int] = ..., graphs: _Optional[_Iterable[_Union[GraphRegistration, _Mapping]]] = ..., server_version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., undecided: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GraphRegistration(_message.Message):
    __slots__ = ("graph", "version", "problems")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    graph: str
    version: str
    problems: _containers.RepeatedCompositeFieldContainer[GraphProblem]
    def __init__(self, graph: _Optional[str] = ..., version: _Optional[str] = ..., problems: _Optional[_Iterable[_Union[GraphProblem, _Mapping]]] = ...) -> None: ...

class GraphProblem(_message.Message):
    __slots__ = ("field", "description")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    field: str
    description: str
    def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class CancelTask(_message.Message):
    __slots__ = ("lease_token", "reason", "grace")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    reason: str
    grace: _duration_pb2.Duration
    def __init__(self, lease_token: _Optional[bytes] = ..., reason: _Optional[str] = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class BeatAck(_message.Message):
    __slots__ = ("number", "lost", "undecided")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    UNDECIDED_FIELD_NUMBER: _ClassVar[int]
    number: int
    lost: _containers.RepeatedScalarFieldContainer[bytes]
    undecided: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, number: _Optional[int] = ..., lost: _Optional[_Iterable[bytes]] = ..., undecided: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Completed(_message.Message):
    __slots__ = ("lease_token", "response", "reason", "message")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    response: CompleteTaskResponse
    reason: str
    message: str
    def __init__(self, lease_token: _Optional[bytes] = ..., response: _Optional[_Union[CompleteTaskResponse, _Mapping]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("deadline", "reason")
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    deadline: _duration_pb2.Duration
    reason: str
    def __init__(self, deadline: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class Throttle(_message.Message):
    __slots__ = ("min_interval", "dropped")
    MIN_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    min_interval: _duration_pb2.Duration
    dropped: int
    def __init__(self, min_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., dropped: _Optional[int] = ...) -> None: ...

class CompleteTaskRequest(_message.Message):
    __slots__ = ("lease_token", "result", "emit", "emitted", "take_next")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    EMIT_FIELD_NUMBER: _ClassVar[int]
    EMITTED_FIELD_NUMBER: _ClassVar[int]
    TAKE_NEXT_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    result: _worker_task_pb2.TaskResult
    emit: _worker_task_pb2.Emit
    emitted: int
    take_next: bool
    def __init__(self, lease_token: _Optional[bytes] = ..., result: _Optional[_Union[_worker_task_pb2.TaskResult, _Mapping]] = ..., emit: _Optional[_Union[_worker_task_pb2.Emit, _Mapping]] = ..., emitted: _Optional[int] = ..., take_next: bool = ...) -> None: ...

class CompleteTaskResponse(_message.Message):
    __slots__ = ("duplicate", "next")
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    duplicate: bool
    next: _worker_task_pb2.TaskAssignment
    def __init__(self, duplicate: bool = ..., next: _Optional[_Union[_worker_task_pb2.TaskAssignment, _Mapping]] = ...) -> None: ...

class RecordMemoRequest(_message.Message):
    __slots__ = ("lease_token", "scope", "key", "index", "value")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    scope: str
    key: str
    index: int
    value: _payload_pb2.Payload
    def __init__(self, lease_token: _Optional[bytes] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...

class RecordMemoResponse(_message.Message):
    __slots__ = ("value", "existed")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    value: _payload_pb2.Payload
    existed: bool
    def __init__(self, value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., existed: bool = ...) -> None: ...

class CallGraphRequest(_message.Message):
    __slots__ = ("lease_token", "call_index", "graph", "graph_version", "input", "interrupt_before", "interrupt_after", "persistence", "context", "step_limit")
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CALL_INDEX_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_AFTER_FIELD_NUMBER: _ClassVar[int]
    PERSISTENCE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STEP_LIMIT_FIELD_NUMBER: _ClassVar[int]
    lease_token: bytes
    call_index: int
    graph: str
    graph_version: str
    input: _payload_pb2.Payload
    interrupt_before: _containers.RepeatedScalarFieldContainer[str]
    interrupt_after: _containers.RepeatedScalarFieldContainer[str]
    persistence: _graph_pb2.SubgraphPersistence
    context: _payload_pb2.Payload
    step_limit: int
    def __init__(self, lease_token: _Optional[bytes] = ..., call_index: _Optional[int] = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., input: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., interrupt_before: _Optional[_Iterable[str]] = ..., interrupt_after: _Optional[_Iterable[str]] = ..., persistence: _Optional[_Union[_graph_pb2.SubgraphPersistence, str]] = ..., context: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., step_limit: _Optional[int] = ...) -> None: ...

class CallGraphResponse(_message.Message):
    __slots__ = ("output", "waiting", "failure", "command")
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    output: _payload_pb2.Payload
    waiting: CallWaiting
    failure: _payload_pb2.Failure
    command: _worker_task_pb2.TaskCompleted
    def __init__(self, output: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., waiting: _Optional[_Union[CallWaiting, _Mapping]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ..., command: _Optional[_Union[_worker_task_pb2.TaskCompleted, _Mapping]] = ...) -> None: ...

class CallWaiting(_message.Message):
    __slots__ = ("interrupt_ids",)
    INTERRUPT_IDS_FIELD_NUMBER: _ClassVar[int]
    interrupt_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, interrupt_ids: _Optional[_Iterable[str]] = ...) -> None: ...
