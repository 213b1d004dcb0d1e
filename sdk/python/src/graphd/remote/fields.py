"""Fields of messages as Python values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2


def read_word(kind: Any, number: int, prefix: str) -> str:
    """The word for a value of an enum, such as "running"; its number where this version does not know it."""
    if number not in kind.values():
        return str(number)
    return str(kind.Name(number)).removeprefix(prefix).lower()


def read_time(message: Any, field: str) -> datetime.datetime | None:
    """A time in UTC; None when it is not set."""
    if not message.HasField(field):
        return None
    moment: datetime.datetime = getattr(message, field).ToDatetime(tzinfo=datetime.timezone.utc)
    return moment


def read_value(message: Any, field: str) -> Any:
    """The value of a payload; None when it is not set."""
    payload: payload_pb2.Payload = getattr(message, field)
    return codec.value_of(payload) if message.HasField(field) else None


def write_filter(conditions: Mapping[str, str | None]) -> str:
    """A filter of a list: all of these fields have these values; None leaves one out."""
    return " AND ".join(f"{name} = {_quote(value)}" for name, value in conditions.items() if value is not None)


def write_metadata_filter(metadata: Mapping[str, Any] | None) -> dict[str, str | None]:
    """The conditions on labels, which are texts, or other scalars as JSON."""
    texts = {key: value if isinstance(value, str) else codec.dumps(value) for key, value in (metadata or {}).items()}
    return {f"metadata.{_quote(key)}": value for key, value in texts.items()}


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
