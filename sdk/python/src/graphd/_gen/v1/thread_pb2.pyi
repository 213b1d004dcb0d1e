from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import interrupt_pb2 as _interrupt_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ThreadState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    THREAD_STATE_UNSPECIFIED: _ClassVar[ThreadState]
    THREAD_STATE_IDLE: _ClassVar[ThreadState]
    THREAD_STATE_BUSY: _ClassVar[ThreadState]
    THREAD_STATE_INTERRUPTED: _ClassVar[ThreadState]
    THREAD_STATE_FAILED: _ClassVar[ThreadState]

class ThreadView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    THREAD_VIEW_UNSPECIFIED: _ClassVar[ThreadView]
    THREAD_VIEW_BASIC: _ClassVar[ThreadView]
    THREAD_VIEW_FULL: _ClassVar[ThreadView]

class CheckpointSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECKPOINT_SOURCE_UNSPECIFIED: _ClassVar[CheckpointSource]
    CHECKPOINT_SOURCE_INPUT: _ClassVar[CheckpointSource]
    CHECKPOINT_SOURCE_LOOP: _ClassVar[CheckpointSource]
    CHECKPOINT_SOURCE_UPDATE: _ClassVar[CheckpointSource]
    CHECKPOINT_SOURCE_FORK: _ClassVar[CheckpointSource]
THREAD_STATE_UNSPECIFIED: ThreadState
THREAD_STATE_IDLE: ThreadState
THREAD_STATE_BUSY: ThreadState
THREAD_STATE_INTERRUPTED: ThreadState
THREAD_STATE_FAILED: ThreadState
THREAD_VIEW_UNSPECIFIED: ThreadView
THREAD_VIEW_BASIC: ThreadView
THREAD_VIEW_FULL: ThreadView
CHECKPOINT_SOURCE_UNSPECIFIED: CheckpointSource
CHECKPOINT_SOURCE_INPUT: CheckpointSource
CHECKPOINT_SOURCE_LOOP: CheckpointSource
CHECKPOINT_SOURCE_UPDATE: CheckpointSource
CHECKPOINT_SOURCE_FORK: CheckpointSource

class Thread(_message.Message):
    __slots__ = ("thread_id", "graph", "graph_version", "metadata", "state", "values", "interrupts", "create_time", "update_time", "expire_time", "ttl", "head", "checkpoint", "run_id", "etag", "keep_checkpoints", "fault")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    KEEP_CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    graph: str
    graph_version: str
    metadata: _containers.ScalarMap[str, str]
    state: ThreadState
    values: _payload_pb2.Payload
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    ttl: _duration_pb2.Duration
    head: _payload_pb2.Cursor
    checkpoint: _payload_pb2.CheckpointRef
    run_id: str
    etag: str
    keep_checkpoints: int
    fault: ThreadFault
    def __init__(self, thread_id: _Optional[str] = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., state: _Optional[_Union[ThreadState, str]] = ..., values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., head: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., run_id: _Optional[str] = ..., etag: _Optional[str] = ..., keep_checkpoints: _Optional[int] = ..., fault: _Optional[_Union[ThreadFault, _Mapping]] = ...) -> None: ...

class ThreadFault(_message.Message):
    __slots__ = ("failures", "retry_time")
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    failures: int
    retry_time: _timestamp_pb2.Timestamp
    def __init__(self, failures: _Optional[int] = ..., retry_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StateSnapshot(_message.Message):
    __slots__ = ("values", "next", "checkpoint", "parent", "step", "source", "tasks", "interrupts", "applied_through", "create_time", "metadata", "run_id", "graph", "graph_version")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    values: _payload_pb2.Payload
    next: _containers.RepeatedScalarFieldContainer[str]
    checkpoint: _payload_pb2.CheckpointRef
    parent: _payload_pb2.CheckpointRef
    step: int
    source: CheckpointSource
    tasks: _containers.RepeatedCompositeFieldContainer[SnapshotTask]
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    applied_through: _payload_pb2.Cursor
    create_time: _timestamp_pb2.Timestamp
    metadata: _containers.ScalarMap[str, str]
    run_id: str
    graph: str
    graph_version: str
    def __init__(self, values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., next: _Optional[_Iterable[str]] = ..., checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., parent: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., step: _Optional[int] = ..., source: _Optional[_Union[CheckpointSource, str]] = ..., tasks: _Optional[_Iterable[_Union[SnapshotTask, _Mapping]]] = ..., interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ..., applied_through: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., run_id: _Optional[str] = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ...) -> None: ...

class SnapshotTask(_message.Message):
    __slots__ = ("task_id", "node", "namespace", "failure", "interrupts", "result", "state", "send_index", "handled_task_id")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SEND_INDEX_FIELD_NUMBER: _ClassVar[int]
    HANDLED_TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    node: str
    namespace: _containers.RepeatedScalarFieldContainer[str]
    failure: _payload_pb2.Failure
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    result: _payload_pb2.Payload
    state: StateSnapshot
    send_index: int
    handled_task_id: str
    def __init__(self, task_id: _Optional[str] = ..., node: _Optional[str] = ..., namespace: _Optional[_Iterable[str]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ..., interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ..., result: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., state: _Optional[_Union[StateSnapshot, _Mapping]] = ..., send_index: _Optional[int] = ..., handled_task_id: _Optional[str] = ...) -> None: ...
