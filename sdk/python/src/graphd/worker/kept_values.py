"""The values of states that a worker keeps from one task to the next, because the server sends each of them once."""

from __future__ import annotations

import contextlib
import marshal
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import worker_task_pb2 as pb


class KeptValue:
    """A value that is there for several tasks. Each gets objects of its own, because a node may change them."""

    __slots__ = ("_copied", "_loads", "payload")

    def __init__(self, payload: payload_pb2.Payload) -> None:
        # A part of a message holds the memory of all of it, so this is a copy of its own.
        self.payload = payload_pb2.Payload()
        self.payload.CopyFrom(payload)
        self._loads = 0
        self._copied: bytes | None = None

    def load(self) -> Any:
        """The value, made anew."""
        copied = self._copied
        if copied is not None:
            return marshal.loads(copied)
        value = codec.value_of(self.payload)
        self._loads += 1
        if self._loads == 2:  # most are read once or often, and this form is read much faster
            with contextlib.suppress(ValueError):  # commands and sends have no such form
                self._copied = marshal.dumps(value)
        return value


class KeptValues:
    """The values of one stream. The server alone says what to keep and what to forget, and counts the bytes.

    The thread of the stream changes them; others may read.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, KeptValue] = {}

    def clear(self) -> None:
        """Forgets all: a new stream begins."""
        self._values.clear()

    def complete(self, assignment: pb.TaskAssignment) -> tuple[dict[str, KeptValue], list[bytes]]:
        """Puts the values that the server has left out into an assignment.

        Returns the values that are kept, by channel, and what is missing here.
        """
        found: dict[str, KeptValue] = {}
        missing: list[bytes] = []
        if not assignment.HasField("kept"):
            return found, missing
        kept = assignment.kept
        for channel, digest in kept.keep.items():
            found[channel] = KeptValue(assignment.channels[channel])
            self._values[digest] = found[channel]
        for channel, digest in kept.use.items():
            value = self._values.get(digest)
            if value is None:
                missing.append(digest)
                continue
            found[channel] = value
            assignment.channels[channel].CopyFrom(value.payload)
        for digest in kept.forget:
            self._values.pop(digest, None)
        return found, missing


__all__ = ["KeptValue", "KeptValues"]
