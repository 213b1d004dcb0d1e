"""Records of checkpoints and writes, and their JSON form in the state of a thread."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphd.errors import GraphdError

Blob = tuple[str, bytes]
"""A value as a serializer of LangGraph gives it: the kind, and bytes."""

_LONGEST_PART = 768 << 10  # below the 1 MiB that a server takes as one value by default


@dataclass(frozen=True)
class TaskWrites:
    """What one task wrote after a checkpoint."""

    checkpoint_id: str
    task_id: str
    task_path: str
    writes: tuple[tuple[int, str, Blob], ...]
    """Each has its index, negative for the special channels of LangGraph, its channel and its value."""


@dataclass(frozen=True)
class SavedCheckpoint:
    """One checkpoint of LangGraph."""

    checkpoint_id: str
    parent_id: str | None
    value: Blob
    metadata: Blob


@dataclass(frozen=True)
class Record:
    """What one call of a saver stores: a checkpoint, writes, or both."""

    checkpoint: SavedCheckpoint | None = None
    writes: tuple[TaskWrites, ...] = ()
    reach: int | None = None
    """How many records the log goes back from here, this one included, when it was rewritten. None is all."""


def encode_record(record: Record) -> list[str]:
    """The JSON values of a record, in order: one, or several parts of a large one."""
    fields: dict[str, Any] = {"writes": [_writes_to_json(w) for w in record.writes]}
    if (saved := record.checkpoint) is not None:
        fields["checkpoint"] = {
            "id": saved.checkpoint_id,
            "parent": saved.parent_id,
            "value": _blob_to_json(saved.value),
            "metadata": _blob_to_json(saved.metadata),
        }
    if record.reach is not None:
        fields["reach"] = record.reach
    text = json.dumps(fields)
    if len(text) <= _LONGEST_PART:
        return [text]
    parts = [text[at : at + _LONGEST_PART] for at in range(0, len(text), _LONGEST_PART)]
    joined = {"id": uuid.uuid4().hex, "of": len(parts)}
    return [json.dumps({**joined, "part": n, "text": part}) for n, part in enumerate(parts, 1)]


def decode_records(values: Iterable[Any], thread: str) -> Iterator[tuple[Record, int]]:
    """The records of a thread, given newest first, each with the number of values up to its beginning.

    A record counts when all its parts are there: a program may have died before the last was stored, and the first
    may be cut off.
    """
    parts: dict[str, list[str]] = {}
    for depth, value in enumerate(values, 1):
        try:
            fields = _join_parts(parts, value) if "of" in value else value
            record = None if fields is None else _record_from_json(fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = (
                f"the state of the thread {thread!r} has no record of GraphdSaver under 'record': {str(value)[:80]!r}"
            )
            raise GraphdError(text, reason="CHECKPOINT_CORRUPT") from error
        if record is not None:
            yield record, depth


def _join_parts(parts: dict[str, list[str]], value: Mapping[str, Any]) -> Any:
    """The fields of a record when the value is the first of its parts and the later ones were there, else None."""
    if value["part"] == value["of"]:
        parts[value["id"]] = []
    if (later := parts.get(value["id"])) is None:
        return None
    later.append(value["text"])
    return json.loads("".join(reversed(parts.pop(value["id"])))) if value["part"] == 1 else None


def _record_from_json(fields: Mapping[str, Any]) -> Record:
    checkpoint = None
    if (saved := fields.get("checkpoint")) is not None:
        value, metadata = _blob_from_json(saved["value"]), _blob_from_json(saved["metadata"])
        checkpoint = SavedCheckpoint(saved["id"], saved["parent"], value, metadata)
    return Record(checkpoint, tuple(map(_writes_from_json, fields["writes"])), fields.get("reach"))


def _writes_to_json(writes: TaskWrites) -> dict[str, Any]:
    return {
        "checkpoint": writes.checkpoint_id,
        "task": writes.task_id,
        "path": writes.task_path,
        "writes": [[index, channel, *_blob_to_json(value)] for index, channel, value in writes.writes],
    }


def _writes_from_json(fields: Mapping[str, Any]) -> TaskWrites:
    listed = ((index, channel, _blob_from_json(value)) for index, channel, *value in fields["writes"])
    return TaskWrites(fields["checkpoint"], fields["task"], fields["path"], tuple(listed))


def _blob_to_json(blob: Blob) -> list[str]:
    return [blob[0], base64.b64encode(blob[1]).decode("ascii")]


def _blob_from_json(value: Any) -> Blob:
    kind, text = value
    return str(kind), base64.b64decode(text, validate=True)
