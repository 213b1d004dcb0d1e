from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import graph_pb2 as _graph_pb2
from graphd._gen.v1 import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ServerInfo(_message.Message):
    __slots__ = ("version", "features", "max_message_bytes", "max_inline_payload_bytes", "max_payload_depth", "heartbeat_interval", "event_retention", "store", "start_time", "caller")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_INLINE_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PAYLOAD_DEPTH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    EVENT_RETENTION_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    version: str
    features: _containers.RepeatedScalarFieldContainer[str]
    max_message_bytes: int
    max_inline_payload_bytes: int
    max_payload_depth: int
    heartbeat_interval: _duration_pb2.Duration
    event_retention: _duration_pb2.Duration
    store: str
    start_time: _timestamp_pb2.Timestamp
    caller: Caller
    def __init__(self, version: _Optional[str] = ..., features: _Optional[_Iterable[str]] = ..., max_message_bytes: _Optional[int] = ..., max_inline_payload_bytes: _Optional[int] = ..., max_payload_depth: _Optional[int] = ..., heartbeat_interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., event_retention: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., store: _Optional[str] = ..., start_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., caller: _Optional[_Union[Caller, _Mapping]] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ("principal", "groups", "how", "tenant")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    HOW_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    principal: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    how: str
    tenant: str
    def __init__(self, principal: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., how: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class ListGraphsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "view")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    view: _graph_pb2.GraphView
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., view: _Optional[_Union[_graph_pb2.GraphView, str]] = ...) -> None: ...

class ListGraphsResponse(_message.Message):
    __slots__ = ("graphs", "next_page_token")
    GRAPHS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    graphs: _containers.RepeatedCompositeFieldContainer[_graph_pb2.Graph]
    next_page_token: str
    def __init__(self, graphs: _Optional[_Iterable[_Union[_graph_pb2.Graph, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetGraphRequest(_message.Message):
    __slots__ = ("graph", "version", "view")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    graph: str
    version: str
    view: _graph_pb2.GraphView
    def __init__(self, graph: _Optional[str] = ..., version: _Optional[str] = ..., view: _Optional[_Union[_graph_pb2.GraphView, str]] = ...) -> None: ...

class PutGraphRequest(_message.Message):
    __slots__ = ("spec", "document", "document_name", "validate_only")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_NAME_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    spec: _graph_pb2.GraphSpec
    document: str
    document_name: str
    validate_only: bool
    def __init__(self, spec: _Optional[_Union[_graph_pb2.GraphSpec, _Mapping]] = ..., document: _Optional[str] = ..., document_name: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class DeleteGraphRequest(_message.Message):
    __slots__ = ("graph", "force")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    graph: str
    force: bool
    def __init__(self, graph: _Optional[str] = ..., force: bool = ...) -> None: ...

class DeleteGraphVersionRequest(_message.Message):
    __slots__ = ("graph", "version", "force")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    graph: str
    version: str
    force: bool
    def __init__(self, graph: _Optional[str] = ..., version: _Optional[str] = ..., force: bool = ...) -> None: ...

class DeleteGraphResponse(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, versions: _Optional[_Iterable[str]] = ...) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ("graph", "page_size", "page_token")
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    graph: str
    page_size: int
    page_token: str
    def __init__(self, graph: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "next_page_token")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[_worker_pb2.WorkerInfo]
    next_page_token: str
    def __init__(self, workers: _Optional[_Iterable[_Union[_worker_pb2.WorkerInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
