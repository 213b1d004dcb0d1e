from graphd._gen.v1 import worker_task_pb2 as _worker_task_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExecuteTaskRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: _worker_task_pb2.TaskAssignment
    def __init__(self, task: _Optional[_Union[_worker_task_pb2.TaskAssignment, _Mapping]] = ...) -> None: ...
