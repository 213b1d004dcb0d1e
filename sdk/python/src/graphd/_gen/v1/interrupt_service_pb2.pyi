from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import interrupt_pb2 as _interrupt_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import run_pb2 as _run_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListInterruptsRequest(_message.Message):
    __slots__ = ("thread_id", "page_size", "page_token", "filter", "order_by", "with_allowed")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    WITH_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    page_size: int
    page_token: str
    filter: str
    order_by: str
    with_allowed: bool
    def __init__(self, thread_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ..., with_allowed: bool = ...) -> None: ...

class ListInterruptsResponse(_message.Message):
    __slots__ = ("interrupts", "next_page_token")
    INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    interrupts: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.Interrupt]
    next_page_token: str
    def __init__(self, interrupts: _Optional[_Iterable[_Union[_interrupt_pb2.Interrupt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CountInterruptsRequest(_message.Message):
    __slots__ = ("filters",)
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, filters: _Optional[_Iterable[str]] = ...) -> None: ...

class CountInterruptsResponse(_message.Message):
    __slots__ = ("counts",)
    class Precision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PRECISION_UNSPECIFIED: _ClassVar[CountInterruptsResponse.Precision]
        PRECISION_EXACT: _ClassVar[CountInterruptsResponse.Precision]
        PRECISION_AT_MOST: _ClassVar[CountInterruptsResponse.Precision]
        PRECISION_AT_LEAST: _ClassVar[CountInterruptsResponse.Precision]
    PRECISION_UNSPECIFIED: CountInterruptsResponse.Precision
    PRECISION_EXACT: CountInterruptsResponse.Precision
    PRECISION_AT_MOST: CountInterruptsResponse.Precision
    PRECISION_AT_LEAST: CountInterruptsResponse.Precision
    class Count(_message.Message):
        __slots__ = ("count", "precision")
        COUNT_FIELD_NUMBER: _ClassVar[int]
        PRECISION_FIELD_NUMBER: _ClassVar[int]
        count: int
        precision: CountInterruptsResponse.Precision
        def __init__(self, count: _Optional[int] = ..., precision: _Optional[_Union[CountInterruptsResponse.Precision, str]] = ...) -> None: ...
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedCompositeFieldContainer[CountInterruptsResponse.Count]
    def __init__(self, counts: _Optional[_Iterable[_Union[CountInterruptsResponse.Count, _Mapping]]] = ...) -> None: ...

class GetInterruptStatisticsRequest(_message.Message):
    __slots__ = ("interval",)
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    interval: _duration_pb2.Duration
    def __init__(self, interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class InterruptStatistics(_message.Message):
    __slots__ = ("counts_since", "begin_time", "interval", "all", "groups", "others", "partial")
    class Counts(_message.Message):
        __slots__ = ("asked", "answered", "answered_late", "defaulted", "expired", "withdrawn")
        ASKED_FIELD_NUMBER: _ClassVar[int]
        ANSWERED_FIELD_NUMBER: _ClassVar[int]
        ANSWERED_LATE_FIELD_NUMBER: _ClassVar[int]
        DEFAULTED_FIELD_NUMBER: _ClassVar[int]
        EXPIRED_FIELD_NUMBER: _ClassVar[int]
        WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
        asked: int
        answered: int
        answered_late: int
        defaulted: int
        expired: int
        withdrawn: int
        def __init__(self, asked: _Optional[int] = ..., answered: _Optional[int] = ..., answered_late: _Optional[int] = ..., defaulted: _Optional[int] = ..., expired: _Optional[int] = ..., withdrawn: _Optional[int] = ...) -> None: ...
    class Series(_message.Message):
        __slots__ = ("total", "median_wait", "p95_wait", "intervals")
        TOTAL_FIELD_NUMBER: _ClassVar[int]
        MEDIAN_WAIT_FIELD_NUMBER: _ClassVar[int]
        P95_WAIT_FIELD_NUMBER: _ClassVar[int]
        INTERVALS_FIELD_NUMBER: _ClassVar[int]
        total: InterruptStatistics.Counts
        median_wait: _duration_pb2.Duration
        p95_wait: _duration_pb2.Duration
        intervals: _containers.RepeatedCompositeFieldContainer[InterruptStatistics.Counts]
        def __init__(self, total: _Optional[_Union[InterruptStatistics.Counts, _Mapping]] = ..., median_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., p95_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., intervals: _Optional[_Iterable[_Union[InterruptStatistics.Counts, _Mapping]]] = ...) -> None: ...
    class Group(_message.Message):
        __slots__ = ("group", "series")
        GROUP_FIELD_NUMBER: _ClassVar[int]
        SERIES_FIELD_NUMBER: _ClassVar[int]
        group: str
        series: InterruptStatistics.Series
        def __init__(self, group: _Optional[str] = ..., series: _Optional[_Union[InterruptStatistics.Series, _Mapping]] = ...) -> None: ...
    COUNTS_SINCE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_TIME_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    counts_since: _timestamp_pb2.Timestamp
    begin_time: _timestamp_pb2.Timestamp
    interval: _duration_pb2.Duration
    all: InterruptStatistics.Series
    groups: _containers.RepeatedCompositeFieldContainer[InterruptStatistics.Group]
    others: InterruptStatistics.Series
    partial: bool
    def __init__(self, counts_since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., begin_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., all: _Optional[_Union[InterruptStatistics.Series, _Mapping]] = ..., groups: _Optional[_Iterable[_Union[InterruptStatistics.Group, _Mapping]]] = ..., others: _Optional[_Union[InterruptStatistics.Series, _Mapping]] = ..., partial: bool = ...) -> None: ...

class GetAnswerStatisticsRequest(_message.Message):
    __slots__ = ("graph", "node")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    graph: str
    node: str
    def __init__(self, graph: _Optional[str] = ..., node: _Optional[str] = ...) -> None: ...

class AnswerStatistics(_message.Message):
    __slots__ = ("counts_since", "answered", "dismissed", "defaulted", "expired", "decisions", "median_wait", "p95_wait")
    class Decision(_message.Message):
        __slots__ = ("value", "count")
        VALUE_FIELD_NUMBER: _ClassVar[int]
        COUNT_FIELD_NUMBER: _ClassVar[int]
        value: _payload_pb2.Payload
        count: int
        def __init__(self, value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...
    COUNTS_SINCE_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    DISMISSED_FIELD_NUMBER: _ClassVar[int]
    DEFAULTED_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_WAIT_FIELD_NUMBER: _ClassVar[int]
    P95_WAIT_FIELD_NUMBER: _ClassVar[int]
    counts_since: _timestamp_pb2.Timestamp
    answered: int
    dismissed: int
    defaulted: int
    expired: int
    decisions: _containers.RepeatedCompositeFieldContainer[AnswerStatistics.Decision]
    median_wait: _duration_pb2.Duration
    p95_wait: _duration_pb2.Duration
    def __init__(self, counts_since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., answered: _Optional[int] = ..., dismissed: _Optional[int] = ..., defaulted: _Optional[int] = ..., expired: _Optional[int] = ..., decisions: _Optional[_Iterable[_Union[AnswerStatistics.Decision, _Mapping]]] = ..., median_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., p95_wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ...) -> None: ...

class UpdateInterruptRequest(_message.Message):
    __slots__ = ("interrupt", "update_mask")
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    interrupt: _interrupt_pb2.Interrupt
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, interrupt: _Optional[_Union[_interrupt_pb2.Interrupt, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class WatchInterruptsRequest(_message.Message):
    __slots__ = ("filter", "resume_token", "start_now", "max_changes", "with_allowed")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    START_NOW_FIELD_NUMBER: _ClassVar[int]
    MAX_CHANGES_FIELD_NUMBER: _ClassVar[int]
    WITH_ALLOWED_FIELD_NUMBER: _ClassVar[int]
    filter: str
    resume_token: str
    start_now: bool
    max_changes: int
    with_allowed: bool
    def __init__(self, filter: _Optional[str] = ..., resume_token: _Optional[str] = ..., start_now: bool = ..., max_changes: _Optional[int] = ..., with_allowed: bool = ...) -> None: ...

class InterruptChange(_message.Message):
    __slots__ = ("interrupt", "resume_token", "bookmark", "gone", "changes")
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    BOOKMARK_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    interrupt: _interrupt_pb2.Interrupt
    resume_token: str
    bookmark: bool
    gone: bool
    changes: _containers.RepeatedCompositeFieldContainer[InterruptChange]
    def __init__(self, interrupt: _Optional[_Union[_interrupt_pb2.Interrupt, _Mapping]] = ..., resume_token: _Optional[str] = ..., bookmark: bool = ..., gone: bool = ..., changes: _Optional[_Iterable[_Union[InterruptChange, _Mapping]]] = ...) -> None: ...

class ClaimInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "duration")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    duration: _duration_pb2.Duration
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReleaseInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "note")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    note: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class CheckResponsesRequest(_message.Message):
    __slots__ = ("thread_id", "responses")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    responses: _containers.RepeatedCompositeFieldContainer[_run_pb2.InterruptResponse]
    def __init__(self, thread_id: _Optional[str] = ..., responses: _Optional[_Iterable[_Union[_run_pb2.InterruptResponse, _Mapping]]] = ...) -> None: ...

class CheckResponsesResponse(_message.Message):
    __slots__ = ("outcomes",)
    class Outcome(_message.Message):
        __slots__ = ("interrupt_id", "decides", "repeated", "missing_votes", "undo")
        INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
        DECIDES_FIELD_NUMBER: _ClassVar[int]
        REPEATED_FIELD_NUMBER: _ClassVar[int]
        MISSING_VOTES_FIELD_NUMBER: _ClassVar[int]
        UNDO_FIELD_NUMBER: _ClassVar[int]
        interrupt_id: str
        decides: bool
        repeated: bool
        missing_votes: int
        undo: _duration_pb2.Duration
        def __init__(self, interrupt_id: _Optional[str] = ..., decides: bool = ..., repeated: bool = ..., missing_votes: _Optional[int] = ..., undo: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[CheckResponsesResponse.Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[CheckResponsesResponse.Outcome, _Mapping]]] = ...) -> None: ...

class DelegateInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "to", "note")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    to: str
    note: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., to: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class RetractResponseRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "note")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    note: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class RevealInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "pointers", "note")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    POINTERS_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    pointers: _containers.RepeatedScalarFieldContainer[str]
    note: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., pointers: _Optional[_Iterable[str]] = ..., note: _Optional[str] = ...) -> None: ...

class RevealInterruptResponse(_message.Message):
    __slots__ = ("value", "default_response", "response", "entry")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    value: _payload_pb2.Payload
    default_response: _payload_pb2.Payload
    response: _payload_pb2.Payload
    entry: _interrupt_pb2.TrailEntry
    def __init__(self, value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., default_response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., response: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., entry: _Optional[_Union[_interrupt_pb2.TrailEntry, _Mapping]] = ...) -> None: ...

class CommentInterruptRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "text", "request_id")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    text: str
    request_id: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., text: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class MakeLinkRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "principal", "groups", "valid", "bound", "preset")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    VALID_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    principal: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    valid: _duration_pb2.Duration
    bound: bool
    preset: _payload_pb2.Payload
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., principal: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., valid: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., bound: bool = ..., preset: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("url", "path", "expire_time")
    URL_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    url: str
    path: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, url: _Optional[str] = ..., path: _Optional[str] = ..., expire_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListTrailRequest(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "page_size", "page_token")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    page_size: int
    page_token: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTrailResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_interrupt_pb2.TrailEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[_interrupt_pb2.TrailEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AnswerInterruptsRequest(_message.Message):
    __slots__ = ("targets", "filter", "value", "dismissal", "note", "expected_count", "request_id", "asked_before")
    class Target(_message.Message):
        __slots__ = ("thread_id", "interrupt_id", "seen")
        THREAD_ID_FIELD_NUMBER: _ClassVar[int]
        INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
        SEEN_FIELD_NUMBER: _ClassVar[int]
        thread_id: str
        interrupt_id: str
        seen: str
        def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., seen: _Optional[str] = ...) -> None: ...
    class Targets(_message.Message):
        __slots__ = ("targets",)
        TARGETS_FIELD_NUMBER: _ClassVar[int]
        targets: _containers.RepeatedCompositeFieldContainer[AnswerInterruptsRequest.Target]
        def __init__(self, targets: _Optional[_Iterable[_Union[AnswerInterruptsRequest.Target, _Mapping]]] = ...) -> None: ...
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    DISMISSAL_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ASKED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    targets: AnswerInterruptsRequest.Targets
    filter: str
    value: _payload_pb2.Payload
    dismissal: _run_pb2.Dismissal
    note: str
    expected_count: int
    request_id: str
    asked_before: _timestamp_pb2.Timestamp
    def __init__(self, targets: _Optional[_Union[AnswerInterruptsRequest.Targets, _Mapping]] = ..., filter: _Optional[str] = ..., value: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., dismissal: _Optional[_Union[_run_pb2.Dismissal, _Mapping]] = ..., note: _Optional[str] = ..., expected_count: _Optional[int] = ..., request_id: _Optional[str] = ..., asked_before: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AnswerOutcome(_message.Message):
    __slots__ = ("thread_id", "interrupt_id", "stored", "reason", "message")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_ID_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    interrupt_id: str
    stored: bool
    reason: str
    message: str
    def __init__(self, thread_id: _Optional[str] = ..., interrupt_id: _Optional[str] = ..., stored: bool = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
