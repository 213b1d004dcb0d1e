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

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_QUEUED: _ClassVar[RunState]
    RUN_STATE_RUNNING: _ClassVar[RunState]
    RUN_STATE_INTERRUPTED: _ClassVar[RunState]
    RUN_STATE_CANCELLING: _ClassVar[RunState]
    RUN_STATE_SUCCEEDED: _ClassVar[RunState]
    RUN_STATE_FAILED: _ClassVar[RunState]
    RUN_STATE_CANCELLED: _ClassVar[RunState]
    RUN_STATE_TIMED_OUT: _ClassVar[RunState]
    RUN_STATE_SUPERSEDED: _ClassVar[RunState]

class ConcurrencyPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONCURRENCY_POLICY_UNSPECIFIED: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_REJECT: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_ENQUEUE: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_CANCEL_ACTIVE: _ClassVar[ConcurrencyPolicy]
    CONCURRENCY_POLICY_ROLLBACK_ACTIVE: _ClassVar[ConcurrencyPolicy]

class OpenInterruptPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPEN_INTERRUPT_POLICY_UNSPECIFIED: _ClassVar[OpenInterruptPolicy]
    OPEN_INTERRUPT_POLICY_REJECT: _ClassVar[OpenInterruptPolicy]
    OPEN_INTERRUPT_POLICY_DISCARD: _ClassVar[OpenInterruptPolicy]
    OPEN_INTERRUPT_POLICY_ENQUEUE: _ClassVar[OpenInterruptPolicy]

class DisconnectPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISCONNECT_POLICY_UNSPECIFIED: _ClassVar[DisconnectPolicy]
    DISCONNECT_POLICY_CONTINUE: _ClassVar[DisconnectPolicy]
    DISCONNECT_POLICY_CANCEL: _ClassVar[DisconnectPolicy]

class ResumeCoverage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESUME_COVERAGE_UNSPECIFIED: _ClassVar[ResumeCoverage]
    RESUME_COVERAGE_PARTIAL: _ClassVar[ResumeCoverage]
    RESUME_COVERAGE_ALL: _ClassVar[ResumeCoverage]
    RESUME_COVERAGE_COLLECT: _ClassVar[ResumeCoverage]

class RunView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_VIEW_UNSPECIFIED: _ClassVar[RunView]
    RUN_VIEW_BASIC: _ClassVar[RunView]
    RUN_VIEW_INTERRUPTS: _ClassVar[RunView]
    RUN_VIEW_FULL: _ClassVar[RunView]
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_QUEUED: RunState
RUN_STATE_RUNNING: RunState
RUN_STATE_INTERRUPTED: RunState
RUN_STATE_CANCELLING: RunState
RUN_STATE_SUCCEEDED: RunState
RUN_STATE_FAILED: RunState
RUN_STATE_CANCELLED: RunState
RUN_STATE_TIMED_OUT: RunState
RUN_STATE_SUPERSEDED: RunState
CONCURRENCY_POLICY_UNSPECIFIED: ConcurrencyPolicy
CONCURRENCY_POLICY_REJECT: ConcurrencyPolicy
CONCURRENCY_POLICY_ENQUEUE: ConcurrencyPolicy
CONCURRENCY_POLICY_CANCEL_ACTIVE: ConcurrencyPolicy
CONCURRENCY_POLICY_ROLLBACK_ACTIVE: ConcurrencyPolicy
OPEN_INTERRUPT_POLICY_UNSPECIFIED: OpenInterruptPolicy
OPEN_INTERRUPT_POLICY_REJECT: OpenInterruptPolicy
OPEN_INTERRUPT_POLICY_DISCARD: OpenInterruptPolicy
OPEN_INTERRUPT_POLICY_ENQUEUE: OpenInterruptPolicy
DISCONNECT_POLICY_UNSPECIFIED: DisconnectPolicy
DISCONNECT_POLICY_CONTINUE: DisconnectPolicy
DISCONNECT_POLICY_CANCEL: DisconnectPolicy
RESUME_COVERAGE_UNSPECIFIED: ResumeCoverage
RESUME_COVERAGE_PARTIAL: ResumeCoverage
RESUME_COVERAGE_ALL: ResumeCoverage
RESUME_COVERAGE_COLLECT: ResumeCoverage
RUN_VIEW_UNSPECIFIED: RunView
RUN_VIEW_BASIC: RunView
RUN_VIEW_INTERRUPTS: RunView
RUN_VIEW_FULL: RunView

class Run(_message.Message):
    __slots__ = ("run_id", "thread_id", "graph", "graph_version", "state", "failure", "metadata", "create_time", "update_time", "applied_through", "open_interrupt_ids", "output", "etag", "started_by", "begin_time", "interrupts")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    APPLIED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    OPEN_INTERRUPT_IDS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    STARTED_BY_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    thread_id: str
    graph: str
    graph_version: str
    state: RunState
    failure: _payload_pb2.Failure
    metadata: _containers.ScalarMap[str, str]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    applied_through: _payload_pb2.Cursor
    open_interrupt_ids: _containers.RepeatedScalarFieldContainer[str]
    output: _payload_pb2.Payload
    etag: str
    started_by: str
    begin_time: _timestamp_pb2.Timestamp
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    def __init__(self, run_id: _Optional[str] = ..., thread_id: _Optional[str] = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., state: _Optional[_Union[RunState, str]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., applied_through: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., open_interrupt_ids: _Optional[_Iterable[str]] = ..., output: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., etag: _Optional[str] = ..., started_by: _Optional[str] = ..., begin_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ...) -> None: ...

class RunSpec(_message.Message):
    __slots__ = ("thread_id", "create_thread", "graph", "graph_version", "input", "replay_from", "context", "metadata", "interrupt_before", "interrupt_after", "step_limit", "run_timeout", "concurrency", "open_interrupts", "run_id", "expected_checkpoint_id", "update", "goto_targets", "input_at", "begin_after", "thread_metadata", "webhook")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class ThreadMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    CREATE_THREAD_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    GRAPH_VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    REPLAY_FROM_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_AFTER_FIELD_NUMBER: _ClassVar[int]
    STEP_LIMIT_FIELD_NUMBER: _ClassVar[int]
    RUN_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    OPEN_INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    GOTO_TARGETS_FIELD_NUMBER: _ClassVar[int]
    INPUT_AT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_AFTER_FIELD_NUMBER: _ClassVar[int]
    THREAD_METADATA_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    create_thread: bool
    graph: str
    graph_version: str
    input: _payload_pb2.Payload
    replay_from: _payload_pb2.CheckpointRef
    context: _payload_pb2.Payload
    metadata: _containers.ScalarMap[str, str]
    interrupt_before: _containers.RepeatedScalarFieldContainer[str]
    interrupt_after: _containers.RepeatedScalarFieldContainer[str]
    step_limit: int
    run_timeout: _duration_pb2.Duration
    concurrency: ConcurrencyPolicy
    open_interrupts: OpenInterruptPolicy
    run_id: str
    expected_checkpoint_id: str
    update: _payload_pb2.Payload
    goto_targets: _containers.RepeatedCompositeFieldContainer[_payload_pb2.Goto]
    input_at: _payload_pb2.CheckpointRef
    begin_after: _duration_pb2.Duration
    thread_metadata: _containers.ScalarMap[str, str]
    webhook: str
    def __init__(self, thread_id: _Optional[str] = ..., create_thread: bool = ..., graph: _Optional[str] = ..., graph_version: _Optional[str] = ..., input: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., replay_from: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., context: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., interrupt_before: _Optional[_Iterable[str]] = ..., interrupt_after: _Optional[_Iterable[str]] = ..., step_limit: _Optional[int] = ..., run_timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., concurrency: _Optional[_Union[ConcurrencyPolicy, str]] = ..., open_interrupts: _Optional[_Union[OpenInterruptPolicy, str]] = ..., run_id: _Optional[str] = ..., expected_checkpoint_id: _Optional[str] = ..., update: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., goto_targets: _Optional[_Iterable[_Union[_payload_pb2.Goto, _Mapping]]] = ..., input_at: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., begin_after: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., thread_metadata: _Optional[_Mapping[str, str]] = ..., webhook: _Optional[str] = ...) -> None: ...

class ResumeSpec(_message.Message):
    __slots__ = ("thread_id", "responses", "single", "coverage", "update", "goto_targets", "metadata", "expected_checkpoint_id", "settings", "webhook")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    SINGLE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    GOTO_TARGETS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    responses: _containers.RepeatedCompositeFieldContainer[InterruptResponse]
    single: InterruptResponse
    coverage: ResumeCoverage
    update: _payload_pb2.Payload
    goto_targets: _containers.RepeatedCompositeFieldContainer[_payload_pb2.Goto]
    metadata: _containers.ScalarMap[str, str]
    expected_checkpoint_id: str
    settings: RunSettings
    webhook: str
    def __init__(self, thread_id: _Optional[str] = ..., responses: _Optional[_Iterable[_Union[InterruptResponse, _Mapping]]] = ..., single: _Optional[_Union[InterruptResponse, _Mapping]] = ..., coverage: _Optional[_Union[ResumeCoverage, str]] = ..., update: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., goto_targets: _Optional[_Iterable[_Union[_payload_pb2.Goto, _Mapping]]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., expected_checkpoint_id: _Optional[str] = ..., settings: _Optional[_Union[RunSettings, _Mapping]] = ..., webhook: _Optional[str] = ...) -> None: ...

class RunSettings(_message.Message):
    __slots__ = ("context", "interrupt_before", "interrupt_after", "step_limit")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_AFTER_FIELD_NUMBER: _ClassVar[int]
    STEP_LIMIT_FIELD_NUMBER: _ClassVar[int]
    context: _payload_pb2.Payload
    interrupt_before: _containers.RepeatedScalarFieldContainer[str]
    interrupt_after: _containers.RepeatedScalarFieldContainer[str]
    step_limit: int
    def __init__(self, context: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., interrupt_before: _Optional[_Iterable[str]] = ..., interrupt_after: _Optional[_Iterable[str]] = ..., step_limit: _Optional[int] = ...) -> None: ...

class InterruptResponse(_message.Message):
    __slots__ = ("interrupt_id", "value", "dismissal", "etag", "note", "seen")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DISMISSAL_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    value: _payload_pb2.Payload
    dismissal: Dismissal
    etag: str
    note: str
    seen: str
    def __init__(self, interrupt_id: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., dismissal: _Optional[_Union[Dismissal, _Mapping]] = ..., etag: _Optional[str] = ..., note: _Optional[str] = ..., seen: _Optional[str] = ...) -> None: ...

class Dismissal(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
