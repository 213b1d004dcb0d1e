from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from graphd._gen.v1 import payload_pb2 as _payload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AssistantView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ASSISTANT_VIEW_UNSPECIFIED: _ClassVar[AssistantView]
    ASSISTANT_VIEW_BASIC: _ClassVar[AssistantView]
    ASSISTANT_VIEW_FULL: _ClassVar[AssistantView]
ASSISTANT_VIEW_UNSPECIFIED: AssistantView
ASSISTANT_VIEW_BASIC: AssistantView
ASSISTANT_VIEW_FULL: AssistantView

class Assistant(_message.Message):
    __slots__ = ("assistant_id", "graph", "name", "description", "context", "config", "metadata", "version", "create_time", "update_time", "etag")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    graph: str
    name: str
    description: str
    context: _payload_pb2.Payload
    config: _payload_pb2.Payload
    metadata: _containers.ScalarMap[str, str]
    version: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    etag: str
    def __init__(self, assistant_id: _Optional[str] = ..., graph: _Optional[str] = ..., name: _Optional[str] = ..., description: _Optional[str] = ..., context: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., config: _Optional[_Union[_payload_pb2.Payload, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ...) -> None: ...

class CreateAssistantRequest(_message.Message):
    __slots__ = ("assistant_id", "assistant", "request_id")
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    assistant: Assistant
    request_id: str
    def __init__(self, assistant_id: _Optional[str] = ..., assistant: _Optional[_Union[Assistant, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetAssistantRequest(_message.Message):
    __slots__ = ("assistant_id", "version")
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    version: int
    def __init__(self, assistant_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class ListAssistantsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "graph", "metadata", "view")
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
    METADATA_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    graph: str
    metadata: _containers.ScalarMap[str, str]
    view: AssistantView
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., graph: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., view: _Optional[_Union[AssistantView, str]] = ...) -> None: ...

class ListAssistantsResponse(_message.Message):
    __slots__ = ("assistants", "next_page_token")
    ASSISTANTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    assistants: _containers.RepeatedCompositeFieldContainer[Assistant]
    next_page_token: str
    def __init__(self, assistants: _Optional[_Iterable[_Union[Assistant, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateAssistantRequest(_message.Message):
    __slots__ = ("assistant", "update_mask")
    ASSISTANT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    assistant: Assistant
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, assistant: _Optional[_Union[Assistant, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ...) -> None: ...

class ListAssistantVersionsRequest(_message.Message):
    __slots__ = ("assistant_id", "page_size", "page_token")
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    page_size: int
    page_token: str
    def __init__(self, assistant_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAssistantVersionsResponse(_message.Message):
    __slots__ = ("versions", "next_page_token")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[Assistant]
    next_page_token: str
    def __init__(self, versions: _Optional[_Iterable[_Union[Assistant, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ActivateAssistantVersionRequest(_message.Message):
    __slots__ = ("assistant_id", "version")
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    version: int
    def __init__(self, assistant_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class DeleteAssistantRequest(_message.Message):
    __slots__ = ("assistant_id", "etag")
    ASSISTANT_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    assistant_id: str
    etag: str
    def __init__(self, assistant_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...
