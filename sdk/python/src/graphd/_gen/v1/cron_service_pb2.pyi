from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CronView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CRON_VIEW_UNSPECIFIED: _ClassVar[CronView]
    CRON_VIEW_BASIC: _ClassVar[CronView]
    CRON_VIEW_FULL: _ClassVar[CronView]
CRON_VIEW_UNSPECIFIED: CronView
CRON_VIEW_BASIC: CronView
CRON_VIEW_FULL: CronView

class Cron(_message.Message):
    __slots__ = ("cron_id", "schedule", "time_zone", "run", "thread_ttl", "end_time", "paused", "metadata", "source", "next_time", "last_firing", "created_by", "started_by", "create_time", "update_time", "etag")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CRON_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    THREAD_TTL_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_FIRING_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    STARTED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    cron_id: str
    schedule: str
    time_zone: str
    run: _run_pb2.RunSpec
    thread_ttl: _duration_pb2.Duration
    end_time: _timestamp_pb2.Timestamp
    paused: bool
    metadata: _containers.ScalarMap[str, str]
    source: _payload_pb2.Payload
    next_time: _timestamp_pb2.Timestamp
    last_firing: CronFiring
    created_by: str
    started_by: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, cron_id: _Optional[str] = ..., schedule: _Optional[str] = ..., time_zone: _Optional[str] = ..., run: _Optional[_Union[_run_pb2.RunSpec, _Mapping]] = ..., thread_ttl: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., end_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., paused: bool = ..., metadata: _Optional[_Mapping[str, str]] = ..., source: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., next_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_firing: _Optional[_Union[CronFiring, _Mapping]] = ..., created_by: _Optional[str] = ..., started_by: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CronFiring(_message.Message):
    __slots__ = ("time", "fire_time", "thread_id", "run_id", "refusal_reason", "refusal_message")
    TIME_FIELD_NUMBER: _ClassVar[int]
    FIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_REASON_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    fire_time: _timestamp_pb2.Timestamp
    thread_id: str
    run_id: str
    refusal_reason: str
    refusal_message: str
    def __init__(self, time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., fire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., refusal_reason: _Optional[str] = ..., refusal_message: _Optional[str] = ...) -> None: ...

class CreateCronRequest(_message.Message):
    __slots__ = ("cron_id", "cron", "request_id")
    CRON_ID_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    cron_id: str
    cron: Cron
    request_id: str
    def __init__(self, cron_id: _Optional[str] = ..., cron: _Optional[_Union[Cron, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetCronRequest(_message.Message):
    __slots__ = ("cron_id",)
    CRON_ID_FIELD_NUMBER: _ClassVar[int]
    cron_id: str
    def __init__(self, cron_id: _Optional[str] = ...) -> None: ...

class ListCronsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "graph", "thread_id", "metadata", "view")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    graph: str
    thread_id: str
    metadata: _containers.ScalarMap[str, str]
    view: CronView
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., graph: _Optional[str] = ..., thread_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., view: _Optional[_Union[CronView, str]] = ...) -> None: ...

class ListCronsResponse(_message.Message):
    __slots__ = ("crons", "next_page_token")
    CRONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    crons: _containers.RepeatedCompositeFieldContainer[Cron]
    next_page_token: str
    def __init__(self, crons: _Optional[_Iterable[_Union[Cron, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateCronRequest(_message.Message):
    __slots__ = ("cron", "update_mask")
    CRON_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    cron: Cron
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, cron: _Optional[_Union[Cron, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class DeleteCronRequest(_message.Message):
    __slots__ = ("cron_id", "etag")
    CRON_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    cron_id: str
    etag: str
    def __init__(self, cron_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...
