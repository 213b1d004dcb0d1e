from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import empty_pb2 as _empty_pb2
from graphd._gen.v1 import event_pb2 as _event_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamRequest(_message.Message):
    __slots__ = ("run", "filter", "on_disconnect", "request_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ON_DISCONNECT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.RunSpec
    filter: _event_pb2.EventFilter
    on_disconnect: _run_pb2.DisconnectPolicy
    request_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.RunSpec, _Mapping]] = ..., filter: _Optional[_Union[_event_pb2.EventFilter, _Mapping]] = ..., on_disconnect: _Optional[_Union[_run_pb2.DisconnectPolicy, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("resume", "filter", "on_disconnect", "request_id")
    RESUME_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ON_DISCONNECT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    resume: _run_pb2.ResumeSpec
    filter: _event_pb2.EventFilter
    on_disconnect: _run_pb2.DisconnectPolicy
    request_id: str
    def __init__(self, resume: _Optional[_Union[_run_pb2.ResumeSpec, _Mapping]] = ..., filter: _Optional[_Union[_event_pb2.EventFilter, _Mapping]] = ..., on_disconnect: _Optional[_Union[_run_pb2.DisconnectPolicy, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("thread_id", "run_id", "after", "beginning", "now", "filter", "snapshot_first", "follow", "recent_ephemeral")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEGINNING_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIRST_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    RECENT_EPHEMERAL_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    run_id: str
    after: _payload_pb2.Cursor
    beginning: _empty_pb2.Empty
    now: _empty_pb2.Empty
    filter: _event_pb2.EventFilter
    snapshot_first: bool
    follow: bool
    recent_ephemeral: bool
    def __init__(self, thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., after: _Optional[_Union[_payload_pb2.Cursor, _Mapping]] = ..., beginning: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., now: _Optional[_Union[_empty_pb2.Empty, _Mapping]] = ..., filter: _Optional[_Union[_event_pb2.EventFilter, _Mapping]] = ..., snapshot_first: bool = ..., follow: bool = ..., recent_ephemeral: bool = ...) -> None: ...

class StartRunRequest(_message.Message):
    __slots__ = ("run", "request_id", "wait", "view")
    RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.RunSpec
    request_id: str
    wait: _duration_pb2.Duration
    view: _run_pb2.RunView
    def __init__(self, run: _Optional[_Union[_run_pb2.RunSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., view: _Optional[_Union[_run_pb2.RunView, str]] = ...) -> None: ...

class ResumeRunRequest(_message.Message):
    __slots__ = ("resume", "request_id", "wait", "view")
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    resume: _run_pb2.ResumeSpec
    request_id: str
    wait: _duration_pb2.Duration
    view: _run_pb2.RunView
    def __init__(self, resume: _Optional[_Union[_run_pb2.ResumeSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., view: _Optional[_Union[_run_pb2.RunView, str]] = ...) -> None: ...

class WaitRunRequest(_message.Message):
    __slots__ = ("thread_id", "run_id", "wait", "view")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    run_id: str
    wait: _duration_pb2.Duration
    view: _run_pb2.RunView
    def __init__(self, thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., view: _Optional[_Union[_run_pb2.RunView, str]] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("thread_id", "run_id", "view")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    run_id: str
    view: _run_pb2.RunView
    def __init__(self, thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., view: _Optional[_Union[_run_pb2.RunView, str]] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("thread_id", "page_size", "page_token", "filter")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, thread_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_run_pb2.Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[_run_pb2.Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AddRunWebhookRequest(_message.Message):
    __slots__ = ("thread_id", "run_id", "webhook_id", "after_sequence", "url")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    run_id: str
    webhook_id: str
    after_sequence: int
    url: str
    def __init__(self, thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., webhook_id: _Optional[str] = ..., after_sequence: _Optional[int] = ..., url: _Optional[str] = ...) -> None: ...

class CancelRunRequest(_message.Message):
    __slots__ = ("thread_id", "run_id", "action", "grace", "wait", "reason")
    class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ACTION_UNSPECIFIED: _ClassVar[CancelRunRequest.Action]
        ACTION_KEEP: _ClassVar[CancelRunRequest.Action]
        ACTION_ROLLBACK: _ClassVar[CancelRunRequest.Action]
        ACTION_DRAIN: _ClassVar[CancelRunRequest.Action]
        ACTION_PAUSE: _ClassVar[CancelRunRequest.Action]
    ACTION_UNSPECIFIED: CancelRunRequest.Action
    ACTION_KEEP: CancelRunRequest.Action
    ACTION_ROLLBACK: CancelRunRequest.Action
    ACTION_DRAIN: CancelRunRequest.Action
    ACTION_PAUSE: CancelRunRequest.Action
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    run_id: str
    action: CancelRunRequest.Action
    grace: _duration_pb2.Duration
    wait: bool
    reason: str
    def __init__(self, thread_id: _Optional[str] = ..., run_id: _Optional[str] = ..., action: _Optional[_Union[CancelRunRequest.Action, str]] = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., wait: bool = ..., reason: _Optional[str] = ...) -> None: ...
