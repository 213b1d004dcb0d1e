"""What programs write, as the server takes it: updates and where to go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2
from graphd.constants import END, ROOT
from graphd.declare.graph_shape import GraphShape
from graphd.declare.schema import fields_of
from graphd.errors import ErrorCode, InvalidUpdateError, with_code
from graphd.messages import coerce_written
from graphd.names import wire_name
from graphd.values.command import Send


def writes_of(update: Any, known: set[str] | None) -> list[tuple[str, Any]]:
    """The keys of an update and their values, of the known keys if they are known.

    InvalidUpdateError is raised for what has no keys.
    """
    if known is not None and ROOT in known:
        return [(ROOT, update)]
    if isinstance(update, Mapping):
        items: Iterable[tuple[Any, Any]] = update.items()
    elif isinstance(update, (list, tuple)) and update and all(_is_pair(p) for p in update):
        items = update
    elif (fields := fields_of(update)) is not None:
        items = fields.items()
    else:
        message = f"Expected dict, got {update}"
        raise InvalidUpdateError(with_code(message, ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE))
    return [(str(k), v) for k, v in items if known is None or k in known]


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], str)


def build_payload(what: str, value: Any) -> payload_pb2.Payload:
    """A value as it travels; the error of one that has no JSON form says what it is."""
    try:
        return codec.to_payload(value)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{what} can't be stored: {error}") from error


def build_update_payload(update: Any) -> payload_pb2.Payload:
    """An input or update as it travels; the error of one that has no JSON form names the key."""
    try:
        return codec.to_payload(update)
    except (TypeError, ValueError):
        if isinstance(update, Mapping):
            for key, value in update.items():
                build_payload(f"the value of {str(key)!r}", value)
        raise


def _build_send(send: Send) -> payload_pb2.Send:
    return payload_pb2.Send(node=wire_name(send.node), input=build_payload(f"the input for {send.node!r}", send.arg))


def build_gotos(target: Any) -> list[payload_pb2.Goto]:
    """Where a command or a conditional edge leads; END leads nowhere."""
    targets = list(target) if isinstance(target, (list, tuple)) else [target]
    found = []
    for one in targets:
        if isinstance(one, Send):
            if one.node == END:
                raise InvalidUpdateError("Cannot send a packet to the END node")
            if one.timeout is not None:
                raise InvalidUpdateError("a Send has no timeout of its own in graphd; give one to the node")
            found.append(payload_pb2.Goto(send=_build_send(one)))
        elif one != END:
            found.append(payload_pb2.Goto(node=wire_name(str(one))))
    return found


def update_object(update: Any, program: GraphShape) -> Any:
    """An input or update as the object that the server takes; ValueError names a message that is none."""
    if program.function is not None:
        return program.function.build_input(update)
    if program.is_root:
        return coerce_written(ROOT, update) if ROOT in program.message_keys else update
    pairs = [(k, coerce_written(k, v) if k in program.message_keys else v) for k, v in writes_of(update, None)]
    if len({k for k, _ in pairs}) < len(pairs):
        raise InvalidUpdateError("this update has several values for one key; the server takes one per key")
    return dict(pairs)
