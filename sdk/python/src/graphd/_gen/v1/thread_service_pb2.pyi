from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from graphd._gen.v1 import thread_pb2 as _thread_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateThreadRequest(_message.Message):
    __slots__ = ("thread_id", "thread", "request_id")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    thread: _thread_pb2.Thread
    request_id: str
    def __init__(self, thread_id: _Optional[str] = ..., thread: _Optional[_Union[_thread_pb2.Thread, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetThreadRequest(_message.Message):
    __slots__ = ("thread_id", "view")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    view: _thread_pb2.ThreadView
    def __init__(self, thread_id: _Optional[str] = ..., view: _Optional[_Union[_thread_pb2.ThreadView, str]] = ...) -> None: ...

class ListThreadsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "filter", "view", "offset", "count_total")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNT_TOTAL_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    filter: str
    view: _thread_pb2.ThreadView
    offset: int
    count_total: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., view: _Optional[_Union[_thread_pb2.ThreadView, str]] = ..., offset: _Optional[int] = ..., count_total: bool = ...) -> None: ...

class ListThreadsResponse(_message.Message):
    __slots__ = ("threads", "next_page_token", "total_size")
    THREADS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    threads: _containers.RepeatedCompositeFieldContainer[_thread_pb2.Thread]
    next_page_token: str
    total_size: int
    def __init__(self, threads: _Optional[_Iterable[_Union[_thread_pb2.Thread, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total_size: _Optional[int] = ...) -> None: ...

class UpdateThreadRequest(_message.Message):
    __slots__ = ("thread", "update_mask")
    THREAD_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    thread: _thread_pb2.Thread
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, thread: _Optional[_Union[_thread_pb2.Thread, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class DeleteThreadRequest(_message.Message):
    __slots__ = ("thread_id", "etag", "force")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    etag: str
    force: bool
    def __init__(self, thread_id: _Optional[str] = ..., etag: _Optional[str] = ..., force: bool = ...) -> None: ...

class DeleteThreadsRequest(_message.Message):
    __slots__ = ("thread_ids", "force")
    THREAD_IDS_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    thread_ids: _containers.RepeatedScalarFieldContainer[str]
    force: bool
    def __init__(self, thread_ids: _Optional[_Iterable[str]] = ..., force: bool = ...) -> None: ...

class DeleteThreadsResponse(_message.Message):
    __slots__ = ("failures",)
    class Failure(_message.Message):
        __slots__ = ("thread_id", "reason", "message")
        THREAD_ID_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        MESSAGE_FIELD_NUMBER: _ClassVar[int]
        thread_id: str
        reason: str
        message: str
        def __init__(self, thread_id: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    failures: _containers.RepeatedCompositeFieldContainer[DeleteThreadsResponse.Failure]
    def __init__(self, failures: _Optional[_Iterable[_Union[DeleteThreadsResponse.Failure, _Mapping]]] = ...) -> None: ...

class ForkThreadRequest(_message.Message):
    __slots__ = ("source_thread_id", "at", "thread_id", "metadata", "request_id")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    source_thread_id: str
    at: _payload_pb2.CheckpointRef
    thread_id: str
    metadata: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, source_thread_id: _Optional[str] = ..., at: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., thread_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class CopyThreadRequest(_message.Message):
    __slots__ = ("source_thread_id", "thread_id", "metadata", "request_id")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    source_thread_id: str
    thread_id: str
    metadata: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, source_thread_id: _Optional[str] = ..., thread_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class PruneThreadRequest(_message.Message):
    __slots__ = ("thread_id", "keep_checkpoints", "etag")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    keep_checkpoints: int
    etag: str
    def __init__(self, thread_id: _Optional[str] = ..., keep_checkpoints: _Optional[int] = ..., etag: _Optional[str] = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("thread_id", "at", "keys", "subgraphs")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SUBGRAPHS_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    at: _payload_pb2.CheckpointRef
    keys: _containers.RepeatedScalarFieldContainer[str]
    subgraphs: bool
    def __init__(self, thread_id: _Optional[str] = ..., at: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., keys: _Optional[_Iterable[str]] = ..., subgraphs: bool = ...) -> None: ...

class UpdateStateRequest(_message.Message):
    __slots__ = ("thread_id", "at", "values", "as_node", "expected_checkpoint_id", "supersede_interrupts", "request_id")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    AS_NODE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDE_INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    at: _payload_pb2.CheckpointRef
    values: _payload_pb2.Payload
    as_node: str
    expected_checkpoint_id: str
    supersede_interrupts: bool
    request_id: str
    def __init__(self, thread_id: _Optional[str] = ..., at: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., as_node: _Optional[str] = ..., expected_checkpoint_id: _Optional[str] = ..., supersede_interrupts: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class BulkUpdateStateRequest(_message.Message):
    __slots__ = ("thread_id", "at", "supersteps", "expected_checkpoint_id", "supersede_interrupts", "request_id")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SUPERSTEPS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDE_INTERRUPTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    at: _payload_pb2.CheckpointRef
    supersteps: _containers.RepeatedCompositeFieldContainer[StateSuperstep]
    expected_checkpoint_id: str
    supersede_interrupts: bool
    request_id: str
    def __init__(self, thread_id: _Optional[str] = ..., at: _Optional[_Union[_payload_pb2.CheckpointRef, _Mapping]] = ..., supersteps: _Optional[_Iterable[_Union[StateSuperstep, _Mapping]]] = ..., expected_checkpoint_id: _Optional[str] = ..., supersede_interrupts: bool = ..., request_id: _Optional[str] = ...) -> None: ...

class StateSuperstep(_message.Message):
    __slots__ = ("updates",)
    UPDATES_FIELD_NUMBER: _ClassVar[int]
    updates: _containers.RepeatedCompositeFieldContainer[StateUpdate]
    def __init__(self, updates: _Optional[_Iterable[_Union[StateUpdate, _Mapping]]] = ...) -> None: ...

class StateUpdate(_message.Message):
    __slots__ = ("values", "as_node", "task_id", "goto_targets")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    AS_NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GOTO_TARGETS_FIELD_NUMBER: _ClassVar[int]
    values: _payload_pb2.Payload
    as_node: str
    task_id: str
    goto_targets: _containers.RepeatedCompositeFieldContainer[_payload_pb2.Goto]
    def __init__(self, values: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., as_node: _Optional[str] = ..., task_id: _Optional[str] = ..., goto_targets: _Optional[_Iterable[_Union[_payload_pb2.Goto, _Mapping]]] = ...) -> None: ...

class ListCheckpointsRequest(_message.Message):
    __slots__ = ("thread_id", "namespace", "page_size", "page_token", "include_values")
    THREAD_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VALUES_FIELD_NUMBER: _ClassVar[int]
    thread_id: str
    namespace: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    include_values: bool
    def __init__(self, thread_id: _Optional[str] = ..., namespace: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_values: bool = ...) -> None: ...

class ListCheckpointsResponse(_message.Message):
    __slots__ = ("checkpoints", "next_page_token")
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    checkpoints: _containers.RepeatedCompositeFieldContainer[_thread_pb2.StateSnapshot]
    next_page_token: str
    def __init__(self, checkpoints: _Optional[_Iterable[_Union[_thread_pb2.StateSnapshot, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
