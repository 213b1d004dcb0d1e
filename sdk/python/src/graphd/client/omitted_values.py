"""Values that an event has no room for.

The server leaves out what is larger than a message may be, and marks the event. What a
call has is read; of what no call has the program is warned.
"""

from __future__ import annotations

import warnings
from typing import Any

from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import interrupt_pb2, payload_pb2
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.state_reads import read_state
from graphd.declare.program import Program
from graphd.errors import GraphdError, OmittedValue
from graphd.names import public_name
from graphd.transport.errors import reason_of
from graphd.transport.server import retry_read

_UNREADABLE = ("CHECKPOINT_NOT_FOUND", "THREAD_NOT_FOUND", "PAYLOAD_TOO_LARGE", "ACCESS_DENIED")


def restore_values(stubs: Any, program: Program | None, event: pb.Event) -> None:
    """Reads what the event came without, and clears its mark. The mark stays where no call has the value.

    A question that can't be read raises why: it must not be shown without its value.
    """
    match event.WhichOneof("kind"):
        case "values":
            is_read = _restore_state(stubs, program, event, event.values.checkpoint, event.values.values)
        case "checkpoint":
            is_read = _restore_state(stubs, program, event, event.checkpoint.checkpoint, event.checkpoint.values)
        case "interrupt":
            for question in event.interrupt.interrupts:
                _restore_question(stubs, event.thread_id, question)
            is_read = True
        case _:
            is_read = False
    event.value_omitted = not is_read


def _restore_state(
    stubs: Any, program: Program | None, event: pb.Event, at: payload_pb2.CheckpointRef, values: payload_pb2.Payload
) -> bool:
    if not at.checkpoint_id:
        return False
    request = ts.GetStateRequest(thread_id=event.thread_id)
    request.at.CopyFrom(at)
    try:
        values.CopyFrom(read_state(stubs.threads, program, request).values)
    except GraphdError as error:
        if reason_of(error) not in _UNREADABLE:
            raise
        return False
    return True


def _restore_question(stubs: Any, thread: str, question: interrupt_pb2.Interrupt) -> None:
    request = ins.GetInterruptRequest(thread_id=thread, interrupt_id=question.interrupt_id)
    whole: interrupt_pb2.Interrupt = retry_read(stubs.interrupts.GetInterrupt, request)
    if whole.HasField("value"):
        question.value.CopyFrom(whole.value)
    if whole.HasField("response"):
        question.response.CopyFrom(whole.response)
    if whole.HasField("default_response"):
        question.default_response.CopyFrom(whole.default_response)


def warn_omitted(event: pb.Event, what: str) -> None:
    """Warns that something of an event is not shown."""
    node = f" of node {public_name(event.node)!r}" if event.node else ""
    text = (
        f"{what}{node} in superstep {event.step} of thread {event.thread_id!r} is left out: "
        "it is larger than a message of the server may be (serve --max-message)"
    )
    warnings.warn(text, OmittedValue, stacklevel=2)
