"""Ids of the messages that a node returns: those that are shown are those that are stored."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from graphd import messages


class MessageIds:
    """Gives the messages of one result their ids.

    A list of messages in the state names what has no id; ``shown`` are
    messages of all keys, because a client watches them.
    """

    def __init__(self, named: Collection[str], *, shown: bool) -> None:
        self._named, self._shown = named, shown
        self._given: dict[int, str] = {}  # by object: one that is returned twice is one message

    def add_ids(self, key: str, value: Any) -> Any:
        """What is written to a key, with ids. The objects of the node stay as they are.

        ValueError is raised for a message of the state that is none.
        """
        named = key in self._named
        if not (named or self._shown):
            return value
        if named:
            value = messages.coerce_written(key, value)
        if isinstance(value, (list, tuple)):
            return [self._add_id(item, named) for item in value] if any(_lacks_id(v, named) for v in value) else value
        return self._add_id(value, named)

    def _add_id(self, value: Any, named: bool) -> Any:
        if not _lacks_id(value, named):
            return value
        fields = messages.to_dict(value) if messages.is_message(value) else dict(value)
        return fields | {"id": self._given.setdefault(id(value), str(uuid.uuid4()))}


def _lacks_id(value: Any, named: bool) -> bool:
    """It is a message without an id; where messages are named, dicts count."""
    if type(value) in (str, int, float, bool):
        return False
    if messages.is_message(value):
        return not value.id
    return named and isinstance(value, dict) and "type" in value and "content" in value and not value.get("id")


__all__ = ["MessageIds"]
