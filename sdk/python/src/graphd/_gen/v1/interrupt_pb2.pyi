from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InterruptState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERRUPT_STATE_UNSPECIFIED: _ClassVar[InterruptState]
    INTERRUPT_STATE_OPEN: _ClassVar[InterruptState]
    INTERRUPT_STATE_ANSWERED: _ClassVar[InterruptState]
    INTERRUPT_STATE_CONSUMED: _ClassVar[InterruptState]
    INTERRUPT_STATE_EXPIRED: _ClassVar[InterruptState]
    INTERRUPT_STATE_CANCELLED: _ClassVar[InterruptState]
    INTERRUPT_STATE_SUPERSEDED: _ClassVar[InterruptState]

class ExpiryAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPIRY_ACTION_UNSPECIFIED: _ClassVar[ExpiryAction]
    EXPIRY_ACTION_FAIL_NODE: _ClassVar[ExpiryAction]
    EXPIRY_ACTION_RESUME_DEFAULT: _ClassVar[ExpiryAction]
    EXPIRY_ACTION_CANCEL_RUN: _ClassVar[ExpiryAction]

class Drift(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DRIFT_UNSPECIFIED: _ClassVar[Drift]
    DRIFT_FAIL: _ClassVar[Drift]
    DRIFT_ASK_AGAIN: _ClassVar[Drift]
    DRIFT_ACCEPT: _ClassVar[Drift]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
    PRIORITY_URGENT: _ClassVar[Priority]

class TrailKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRAIL_KIND_UNSPECIFIED: _ClassVar[TrailKind]
    TRAIL_KIND_ASKED: _ClassVar[TrailKind]
    TRAIL_KIND_CLAIMED: _ClassVar[TrailKind]
    TRAIL_KIND_RELEASED: _ClassVar[TrailKind]
    TRAIL_KIND_CHANGED: _ClassVar[TrailKind]
    TRAIL_KIND_COMMENTED: _ClassVar[TrailKind]
    TRAIL_KIND_VOTED: _ClassVar[TrailKind]
    TRAIL_KIND_ANSWERED: _ClassVar[TrailKind]
    TRAIL_KIND_USED: _ClassVar[TrailKind]
    TRAIL_KIND_REMINDED: _ClassVar[TrailKind]
    TRAIL_KIND_ESCALATED: _ClassVar[TrailKind]
    TRAIL_KIND_EXPIRED: _ClassVar[TrailKind]
    TRAIL_KIND_CANCELLED: _ClassVar[TrailKind]
    TRAIL_KIND_SUPERSEDED: _ClassVar[TrailKind]
    TRAIL_KIND_COPIED: _ClassVar[TrailKind]
    TRAIL_KIND_RETRACTED: _ClassVar[TrailKind]
    TRAIL_KIND_DELEGATED: _ClassVar[TrailKind]
    TRAIL_KIND_REVEALED: _ClassVar[TrailKind]

class InterruptAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERRUPT_ACTION_UNSPECIFIED: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_ANSWER: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_CLAIM: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_RELEASE: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_COMMENT: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_DELEGATE: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_ASSIGN: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_EXTEND: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_END_CLAIM: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_RETRACT: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_REVEAL: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_LINK: _ClassVar[InterruptAction]
    INTERRUPT_ACTION_CANCEL: _ClassVar[InterruptAction]
INTERRUPT_STATE_UNSPECIFIED: InterruptState
INTERRUPT_STATE_OPEN: InterruptState
INTERRUPT_STATE_ANSWERED: InterruptState
INTERRUPT_STATE_CONSUMED: InterruptState
INTERRUPT_STATE_EXPIRED: InterruptState
INTERRUPT_STATE_CANCELLED: InterruptState
INTERRUPT_STATE_SUPERSEDED: InterruptState
EXPIRY_ACTION_UNSPECIFIED: ExpiryAction
EXPIRY_ACTION_FAIL_NODE: ExpiryAction
EXPIRY_ACTION_RESUME_DEFAULT: ExpiryAction
EXPIRY_ACTION_CANCEL_RUN: ExpiryAction
DRIFT_UNSPECIFIED: Drift
DRIFT_FAIL: Drift
DRIFT_ASK_AGAIN: Drift
DRIFT_ACCEPT: Drift
PRIORITY_UNSPECIFIED: Priority
PRIORITY_LOW: Priority
PRIORITY_NORMAL: Priority
PRIORITY_HIGH: Priority
PRIORITY_URGENT: Priority
TRAIL_KIND_UNSPECIFIED: TrailKind
TRAIL_KIND_ASKED: TrailKind
TRAIL_KIND_CLAIMED: TrailKind
TRAIL_KIND_RELEASED: TrailKind
TRAIL_KIND_CHANGED: TrailKind
TRAIL_KIND_COMMENTED: TrailKind
TRAIL_KIND_VOTED: TrailKind
TRAIL_KIND_ANSWERED: TrailKind
TRAIL_KIND_USED: TrailKind
TRAIL_KIND_REMINDED: TrailKind
TRAIL_KIND_ESCALATED: TrailKind
TRAIL_KIND_EXPIRED: TrailKind
TRAIL_KIND_CANCELLED: TrailKind
TRAIL_KIND_SUPERSEDED: TrailKind
TRAIL_KIND_COPIED: TrailKind
TRAIL_KIND_RETRACTED: TrailKind
TRAIL_KIND_DELEGATED: TrailKind
TRAIL_KIND_REVEALED: TrailKind
INTERRUPT_ACTION_UNSPECIFIED: InterruptAction
INTERRUPT_ACTION_ANSWER: InterruptAction
INTERRUPT_ACTION_CLAIM: InterruptAction
INTERRUPT_ACTION_RELEASE: InterruptAction
INTERRUPT_ACTION_COMMENT: InterruptAction
INTERRUPT_ACTION_DELEGATE: InterruptAction
INTERRUPT_ACTION_ASSIGN: InterruptAction
INTERRUPT_ACTION_EXTEND: InterruptAction
INTERRUPT_ACTION_END_CLAIM: InterruptAction
INTERRUPT_ACTION_RETRACT: InterruptAction
INTERRUPT_ACTION_REVEAL: InterruptAction
INTERRUPT_ACTION_LINK: InterruptAction
INTERRUPT_ACTION_CANCEL: InterruptAction

class People(_message.Message):
    __slots__ = ("users", "groups", "approvals", "vetoes", "not_requester", "requester", "exclusive", "not_contributor", "agree", "delegable", "reveal")
    USERS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    VETOES_FIELD_NUMBER: _ClassVar[int]
    NOT_REQUESTER_FIELD_NUMBER: _ClassVar[int]
    REQUESTER_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    NOT_CONTRIBUTOR_FIELD_NUMBER: _ClassVar[int]
    AGREE_FIELD_NUMBER: _ClassVar[int]
    DELEGABLE_FIELD_NUMBER: _ClassVar[int]
    REVEAL_FIELD_NUMBER: _ClassVar[int]
    users: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    approvals: int
    vetoes: int
    not_requester: bool
    requester: str
    exclusive: bool
    not_contributor: bool
    agree: str
    delegable: bool
    reveal: Audience
    def __init__(self, users: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., approvals: _Optional[int] = ..., vetoes: _Optional[int] = ..., not_requester: bool = ..., requester: _Optional[str] = ..., exclusive: bool = ..., not_contributor: bool = ..., agree: _Optional[str] = ..., delegable: bool = ..., reveal: _Optional[_Union[Audience, _Mapping]] = ...) -> None: ...

class Delegation(_message.Message):
    __slots__ = ("to",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    to: str
    def __init__(self, to: _Optional[str] = ..., **kwargs) -> None: ...

class Audience(_message.Message):
    __slots__ = ("users", "groups", "priority")
    USERS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    users: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    priority: Priority
    def __init__(self, users: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., priority: _Optional[_Union[Priority, str]] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("after", "remind", "escalate")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    REMIND_FIELD_NUMBER: _ClassVar[int]
    ESCALATE_FIELD_NUMBER: _ClassVar[int]
    after: _duration_pb2.Duration
    remind: Audience
    escalate: Audience
    def __init__(self, after: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., remind: _Optional[_Union[Audience, _Mapping]] = ..., escalate: _Optional[_Union[Audience, _Mapping]] = ...) -> None: ...

class Vote(_message.Message):
    __slots__ = ("principal", "time", "agrees", "value", "note", "trail")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    AGREES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    TRAIL_FIELD_NUMBER: _ClassVar[int]
    principal: str
    time: _timestamp_pb2.Timestamp
    agrees: bool
    value: _payload_pb2.Payload
    note: str
    trail: int
    def __init__(self, principal: _Optional[str] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., agrees: bool = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., note: _Optional[str] = ..., trail: _Optional[int] = ...) -> None: ...

class TrailEntry(_message.Message):
    __slots__ = ("number", "time", "principal", "principal_how", "kind", "note", "method", "request_id", "agrees", "dismissed", "value", "value_digest", "seen", "policy", "assignees", "until", "from_thread_id", "record", "digest", "fields", "users", "groups", "priority")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_HOW_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGREES_FIELD_NUMBER: _ClassVar[int]
    DISMISSED_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VALUE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    FROM_THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    number: int
    time: _timestamp_pb2.Timestamp
    principal: str
    principal_how: str
    kind: TrailKind
    note: str
    method: str
    request_id: str
    agrees: bool
    dismissed: bool
    value: _payload_pb2.Payload
    value_digest: str
    seen: str
    policy: str
    assignees: _containers.RepeatedScalarFieldContainer[str]
    until: _timestamp_pb2.Timestamp
    from_thread_id: str
    record: str
    digest: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    users: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedScalarFieldContainer[str]
    priority: str
    def __init__(self, number: _Optional[int] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., principal: _Optional[str] = ..., principal_how: _Optional[str] = ..., kind: _Optional[_Union[TrailKind, str]] = ..., note: _Optional[str] = ..., method: _Optional[str] = ..., request_id: _Optional[str] = ..., agrees: bool = ..., dismissed: bool = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., value_digest: _Optional[str] = ..., seen: _Optional[str] = ..., policy: _Optional[str] = ..., assignees: _Optional[_Iterable[str]] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., from_thread_id: _Optional[str] = ..., record: _Optional[str] = ..., digest: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., users: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[str]] = ..., priority: _Optional[str] = ...) -> None: ...

class Interrupt(_message.Message):
    __slots__ = ("interrupt_id", "thread_id", "run_id", "graph", "checkpoint", "node", "task_id", "scope", "key", "index", "reason", "message", "value", "response_schema", "state", "create_time", "update_time", "expire_time", "expiry_action", "default_response", "assignees", "response", "dismissed", "responder", "note", "etag", "people", "priority", "steps", "next_step", "due_time", "votes", "claimed_by", "claim_expire_time", "effective_time", "trail_size", "seen", "drift", "drift_ignore", "round", "replaces", "differs", "accepted", "responder_how", "response_method", "response_time", "undo", "delegations", "secret", "allowed")
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_ACTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ASSIGNEES_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    DISMISSED_FIELD_NUMBER: _ClassVar[int]
    RESPONDER_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEP_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_BY_FIELD_NUMBER: _ClassVar[int]
    CLAIM_EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_TIME_FIELD_NUMBER: _ClassVar[int]
    TRAIL_SIZE_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    DRIFT_FIELD_NUMBER: _ClassVar[int]
    DRIFT_IGNORE_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    DIFFERS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    RESPONDER_HOW_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_METHOD_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_TIME_FIELD_NUMBER: _ClassVar[int]
    UNDO_FIELD_NUMBER: _ClassVar[int]
    DELEGATIONS_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    interrupt_id: str
    thread_id: str
    run_id: str
    graph: str
    checkpoint: _payload_pb2.CheckpointRef
    node: str
    task_id: str
    scope: str
    key: str
    index: int
    reason: str
    message: str
    value: _payload_pb2.Payload
    response_schema: _payload_pb2.Payload
    state: InterruptState
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    expiry_action: ExpiryAction
    default_response: _payload_pb2.Payload
    assignees: _containers.RepeatedScalarFieldContainer[str]
    response: _payload_pb2.Payload
    dismissed: bool
    responder: str
    note: str
    etag: str
    people: People
    priority: Priority
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    next_step: int
    due_time: _timestamp_pb2.Timestamp
    votes: _containers.RepeatedCompositeFieldContainer[Vote]
    claimed_by: str
    claim_expire_time: _timestamp_pb2.Timestamp
    effective_time: _timestamp_pb2.Timestamp
    trail_size: int
    seen: str
    drift: Drift
    drift_ignore: _containers.RepeatedScalarFieldContainer[str]
    round: int
    replaces: str
    differs: _containers.RepeatedScalarFieldContainer[str]
    accepted: _containers.RepeatedScalarFieldContainer[str]
    responder_how: str
    response_method: str
    response_time: _timestamp_pb2.Timestamp
    undo: _duration_pb2.Duration
    delegations: _containers.RepeatedCompositeFieldContainer[Delegation]
    secret: _containers.RepeatedScalarFieldContainer[str]
    allowed: _containers.RepeatedScalarFieldContainer[InterruptAction]
    def __init__(self, interrupt_id: _Optional[str] = ..., thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., graph: _Optional[str] = ..., checkpoint: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., node: _Optional[str] = ..., task_id: _Optional[str] = ..., scope: _Optional[str] = ..., key: _Optional[str] = ..., index: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., response_schema: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., state: _Optional[_Union[InterruptState, str]] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expiry_action: _Optional[_Union[ExpiryAction, str]] = ..., default_response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., assignees: _Optional[_Iterable[str]] = ..., response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., dismissed: bool = ..., responder: _Optional[str] = ..., note: _Optional[str] = ..., etag: _Optional[str] = ..., people: _Optional[_Union[People, _Mapping]] = ..., priority: _Optional[_Union[Priority, str]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., next_step: _Optional[int] = ..., due_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., votes: _Optional[_Iterable[_Union[Vote, _Mapping]]] = ..., claimed_by: _Optional[str] = ..., claim_expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., effective_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., trail_size: _Optional[int] = ..., seen: _Optional[str] = ..., drift: _Optional[_Union[Drift, str]] = ..., drift_ignore: _Optional[_Iterable[str]] = ..., round: _Optional[int] = ..., replaces: _Optional[str] = ..., differs: _Optional[_Iterable[str]] = ..., accepted: _Optional[_Iterable[str]] = ..., responder_how: _Optional[str] = ..., response_method: _Optional[str] = ..., response_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., undo: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., delegations: _Optional[_Iterable[_Union[Delegation, _Mapping]]] = ..., secret: _Optional[_Iterable[str]] = ..., allowed: _Optional[_Iterable[_Union[InterruptAction, str]]] = ...) -> None: ...
