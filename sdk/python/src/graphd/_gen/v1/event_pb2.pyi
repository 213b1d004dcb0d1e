from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import interrupt_pb2 as _interrupt_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import run_pb2 as _run_pb2
from graphd._gen.v1 import thread_pb2 as _thread_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Channel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANNEL_UNSPECIFIED: _ClassVar[Channel]
    CHANNEL_UPDATES: _ClassVar[Channel]
    CHANNEL_VALUES: _ClassVar[Channel]
    CHANNEL_MESSAGES: _ClassVar[Channel]
    CHANNEL_CUSTOM: _ClassVar[Channel]
    CHANNEL_TASKS: _ClassVar[Channel]
    CHANNEL_CHECKPOINTS: _ClassVar[Channel]
    CHANNEL_DEBUG: _ClassVar[Channel]
CHANNEL_UNSPECIFIED: Channel
CHANNEL_UPDATES: Channel
CHANNEL_VALUES: Channel
CHANNEL_MESSAGES: Channel
CHANNEL_CUSTOM: Channel
CHANNEL_TASKS: Channel
CHANNEL_CHECKPOINTS: Channel
CHANNEL_DEBUG: Channel

class EventFilter(_message.Message):
    __slots__ = ("channels", "namespaces", "depth", "custom_names")
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_NAMES_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedScalarFieldContainer[Channel]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    depth: int
    custom_names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, channels: _Optional[_Iterable[_Union[Channel, str]]] = ..., namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ..., depth: _Optional[int] = ..., custom_names: _Optional[_Iterable[str]] = ...) -> None: ...

class Namespace(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[_Iterable[str]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("cursor", "time", "thread_id", "run_id", "namespace", "step", "node", "task_id", "attempt", "ephemeral", "channel", "value_omitted", "actor", "opened", "run_state", "values", "update", "interrupt", "interrupt_resolved", "task", "message", "custom", "checkpoint", "gap", "heartbeat", "end")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    VALUE_OMITTED_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    RUN_STATE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    cursor: _payload_pb2.Cursor
    time: _timestamp_pb2.Timestamp
    thread_id: str
    run_id: str
    namespace: _containers.RepeatedScalarFieldContainer[str]
    step: int
    node: str
    task_id: str
    attempt: int
    ephemeral: bool
    channel: str
    value_omitted: bool
    actor: str
    opened: StreamOpened
    run_state: RunStateChanged
    values: StateValues
    update: NodeUpdate
    interrupt: InterruptRaised
    interrupt_resolved: InterruptResolved
    task: TaskChange
    message: MessageDelta
    custom: CustomEvent
    checkpoint: CheckpointSaved
    gap: Gap
    heartbeat: Heartbeat
    end: EndOfStream
    def __init__(self, cursor: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., namespace: _Optional[_Iterable[str]] = ..., step: _Optional[int] = ..., node: _Optional[str] = ..., task_id: _Optional[str] = ..., attempt: _Optional[int] = ..., ephemeral: bool = ..., channel: _Optional[str] = ..., value_omitted: bool = ..., actor: _Optional[str] = ..., opened: _Optional[_Union[StreamOpened, _Mapping]] = ..., run_state: _Optional[_Union[RunStateChanged, _Mapping]] = ..., values: _Optional[_Union[StateValues, _Mapping]] = ..., update: _Optional[_Union[NodeUpdate, _Mapping]] = ..., interrupt: _Optional[_Union[InterruptRaised, _Mapping]] = ..., interrupt_resolved: _Optional[_Union[InterruptResolved, _Mapping]] = ..., task: _Optional[_Union[TaskChange, _Mapping]] = ..., message: _Optional[_Union[MessageDelta, _Mapping]] = ..., custom: _Optional[_Union[CustomEvent, _Mapping]] = ..., checkpoint: _Optional[_Union[CheckpointSaved, _Mapping]] = ..., gap: _Optional[_Union[Gap, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., end: _Optional[_Union[EndOfStream, _Mapping]] = ...) -> None: ...

class StreamOpened(_message.Message):
    __slots__ = ("run", "head", "attached")
    RUN_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    head: _payload_pb2.Cursor
    attached: bool
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., head: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., attached: bool = ...) -> None: ...

class RunStateChanged(_message.Message):
    __slots__ = ("state", "failure")
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    state: _run_pb2.RunState
    failure: _payload_pb2.Failure
    def __init__(self, state: _Optional[_Union[_run_pb2.RunState, str]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ...) -> None: ...

class StateValues(_message.Message):
    __slots__ = ("values", "checkpoint", "interrupts", "next")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    values: _payload_pb2.Payload
    checkpoint: _payload_pb2.CheckpointRef
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    next: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ..., next: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeUpdate(_message.Message):
    __slots__ = ("values", "cached")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    values: _payload_pb2.Payload
    cached: bool
    def __init__(self, values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., cached: bool = ...) -> None: ...

class InterruptRaised(_message.Message):
    __slots__ = ("interrupts",)
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    def __init__(self, interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ...) -> None: ...

class InterruptResolved(_message.Message):
    __slots__ = ("interrupts",)
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    def __init__(self, interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ...) -> None: ...

class TaskChange(_message.Message):
    __slots__ = ("phase", "failure", "retry_delay", "value", "triggers")
    class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PHASE_UNSPECIFIED: _ClassVar[TaskChange.Phase]
        PHASE_SCHEDULED: _ClassVar[TaskChange.Phase]
        PHASE_STARTED: _ClassVar[TaskChange.Phase]
        PHASE_RETRYING: _ClassVar[TaskChange.Phase]
        PHASE_SUCCEEDED: _ClassVar[TaskChange.Phase]
        PHASE_FAILED: _ClassVar[TaskChange.Phase]
        PHASE_INTERRUPTED: _ClassVar[TaskChange.Phase]
        PHASE_CANCELLED: _ClassVar[TaskChange.Phase]
        PHASE_UNASSIGNED: _ClassVar[TaskChange.Phase]
        PHASE_RESTARTED: _ClassVar[TaskChange.Phase]
    PHASE_UNSPECIFIED: TaskChange.Phase
    PHASE_SCHEDULED: TaskChange.Phase
    PHASE_STARTED: TaskChange.Phase
    PHASE_RETRYING: TaskChange.Phase
    PHASE_SUCCEEDED: TaskChange.Phase
    PHASE_FAILED: TaskChange.Phase
    PHASE_INTERRUPTED: TaskChange.Phase
    PHASE_CANCELLED: TaskChange.Phase
    PHASE_UNASSIGNED: TaskChange.Phase
    PHASE_RESTARTED: TaskChange.Phase
    PHASE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    phase: TaskChange.Phase
    failure: _payload_pb2.Failure
    retry_delay: _duration_pb2.Duration
    value: _payload_pb2.Payload
    triggers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, phase: _Optional[_Union[TaskChange.Phase, str]] = ..., failure: _Optional[_Union[_payload_pb2.Failure, _Mapping]] = ..., retry_delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., triggers: _Optional[_Iterable[str]] = ...) -> None: ...

class MessageDelta(_message.Message):
    __slots__ = ("value", "name")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    value: _payload_pb2.Payload
    name: str
    def __init__(self, value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class CustomEvent(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: _payload_pb2.Payload
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...

class CheckpointSaved(_message.Message):
    __slots__ = ("checkpoint", "parent", "source", "next", "values")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    checkpoint: _payload_pb2.CheckpointRef
    parent: _payload_pb2.CheckpointRef
    source: _thread_pb2.CheckpointSource
    next: _containers.RepeatedCompositeFieldContainer[DueTask]
    values: _payload_pb2.Payload
    def __init__(self, checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., parent: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., source: _Optional[_Union[_thread_pb2.CheckpointSource, str]] = ..., next: _Optional[_Iterable[_Union[DueTask, _Mapping]]] = ..., values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...

class DueTask(_message.Message):
    __slots__ = ("task_id", "node")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    node: str
    def __init__(self, task_id: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class Gap(_message.Message):
    __slots__ = ("missing", "durable_lost")
    MISSING_FIELD_NUMBER: _ClassVar[int]
    DURABLE_LOST_FIELD_NUMBER: _ClassVar[int]
    missing: int
    durable_lost: bool
    def __init__(self, missing: _Optional[int] = ..., durable_lost: bool = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("scanned",)
    SCANNED_FIELD_NUMBER: _ClassVar[int]
    scanned: _payload_pb2.Cursor
    def __init__(self, scanned: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ...) -> None: ...

class EndOfStream(_message.Message):
    __slots__ = ("cause", "run", "resume_at")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CAUSE_UNSPECIFIED: _ClassVar[EndOfStream.Cause]
        CAUSE_RUN_STOPPED: _ClassVar[EndOfStream.Cause]
        CAUSE_DRAINING: _ClassVar[EndOfStream.Cause]
        CAUSE_SLOW_CONSUMER: _ClassVar[EndOfStream.Cause]
        CAUSE_THREAD_DELETED: _ClassVar[EndOfStream.Cause]
        CAUSE_LOG_END: _ClassVar[EndOfStream.Cause]
    CAUSE_UNSPECIFIED: EndOfStream.Cause
    CAUSE_RUN_STOPPED: EndOfStream.Cause
    CAUSE_DRAINING: EndOfStream.Cause
    CAUSE_SLOW_CONSUMER: EndOfStream.Cause
    CAUSE_THREAD_DELETED: EndOfStream.Cause
    CAUSE_LOG_END: EndOfStream.Cause
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    RESUME_AT_FIELD_NUMBER: _ClassVar[int]
    cause: EndOfStream.Cause
    run: _run_pb2.Run
    resume_at: _payload_pb2.Cursor
    def __init__(self, cause: _Optional[_Union[EndOfStream.Cause, str]] = ..., run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., resume_at: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ...) -> None: ...
