from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Payload(_message.Message):
    __slots__ = ("json", "data", "media_type", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JSON_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    json: str
    data: bytes
    media_type: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, json: _Optional[str] = ..., data: _Optional[bytes] = ..., media_type: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Cursor(_message.Message):
    __slots__ = ("log_id", "sequence", "mark")
    LOG_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    log_id: str
    sequence: int
    mark: int
    def __init__(self, log_id: _Optional[str] = ..., sequence: _Optional[int] = ..., mark: _Optional[int] = ...) -> None: ...

class CheckpointRef(_message.Message):
    __slots__ = ("checkpoint_id", "namespace")
    CHECKPOINT_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    checkpoint_id: str
    namespace: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, checkpoint_id: _Optional[str] = ..., namespace: _Optional[_Iterable[str]] = ...) -> None: ...

class Send(_message.Message):
    __slots__ = ("node", "input")
    NODE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    node: str
    input: Payload
    def __init__(self, node: _Optional[str] = ..., input: _Optional[_Union[Payload, _Mapping]] = ...) -> None: ...

class Goto(_message.Message):
    __slots__ = ("node", "send")
    NODE_FIELD_NUMBER: _ClassVar[int]
    SEND_FIELD_NUMBER: _ClassVar[int]
    node: str
    send: Send
    def __init__(self, node: _Optional[str] = ..., send: _Optional[_Union[Send, _Mapping]] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("reason", "message", "node", "type", "attempt", "details", "stack")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    node: str
    type: str
    attempt: int
    details: _containers.ScalarMap[str, str]
    stack: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., node: _Optional[str] = ..., type: _Optional[str] = ..., attempt: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ..., stack: _Optional[str] = ...) -> None: ...
