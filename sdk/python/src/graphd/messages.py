"""Chat messages. LangChain's own classes are used where they are installed.

Without LangChain the classes here stand in: plain values that also read like
the dicts they are stored as.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

REMOVE_ALL_MESSAGES = "__remove_all__"
_ROLES = {"user": "human", "assistant": "ai", "developer": "system"}


class BaseMessage:
    """One message of a chat."""

    type: str = ""

    def __init__(self, content: Any = "", *, id: str | None = None, name: str | None = None, **extra: Any) -> None:
        extra.pop("type", None)
        self.content, self.id, self.name = content, id, name
        self._extra = extra

    def __getattr__(self, attribute: str) -> Any:
        extra = self.__dict__.get("_extra", {})
        if attribute in extra:
            return extra[attribute]
        if attribute in ("tool_calls", "invalid_tool_calls") and self.type == "ai":
            return []
        if attribute in ("additional_kwargs", "response_metadata"):
            return {}
        raise AttributeError(f"{type(self).__name__} has no attribute {attribute!r}")

    def to_dict(self) -> dict[str, Any]:
        """The message as it is stored: what is set, and nothing else."""
        known = {"type": self.type, "content": self.content, "name": self.name, "id": self.id}
        fields = {k: v for k, v in known.items() if v is not None}
        return fields | {k: v for k, v in self._extra.items() if v not in (None, [], {})}

    model_dump = to_dict

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Reads a field as from a dict."""
        return self.to_dict().get(key, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BaseMessage):
            return self.to_dict() == other.to_dict()
        return self.to_dict() == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.id))

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in self.to_dict().items() if k != "type")
        return f"{type(self).__name__}({fields})"


class HumanMessage(BaseMessage):
    """What a person says."""

    type = "human"


class AIMessage(BaseMessage):
    """What a model says; ``tool_calls`` are the tools it wants to use."""

    type = "ai"


class AIMessageChunk(AIMessage):
    """A piece of what a model says."""

    type = "AIMessageChunk"


class SystemMessage(BaseMessage):
    """What the program tells the model."""

    type = "system"


class ToolMessage(BaseMessage):
    """What a tool answers; ``tool_call_id`` says to which call."""

    type = "tool"


class FunctionMessage(BaseMessage):
    """What a function answers, in the older style."""

    type = "function"


class RemoveMessage(BaseMessage):
    """Removes the message with this id from a list of messages."""

    type = "remove"

    def __init__(self, id: str, **extra: Any) -> None:
        super().__init__("", id=id, **extra)


AnyMessage = HumanMessage | AIMessage | SystemMessage | ToolMessage | FunctionMessage | RemoveMessage
_OWN: dict[str, type[BaseMessage]] = {
    c.type: c
    for c in (HumanMessage, AIMessage, AIMessageChunk, SystemMessage, ToolMessage, FunctionMessage, RemoveMessage)
}


def _load_langchain() -> Any | None:
    try:
        return importlib.import_module("langchain_core.messages")
    except ImportError:
        return None


def is_message(value: Any) -> bool:
    """Tells whether a value is a message object, ours or LangChain's."""
    if isinstance(value, BaseMessage):
        return True
    return any(c.__name__ == "BaseMessage" and c.__module__.startswith("langchain_core.") for c in type(value).__mro__)


def is_message_class(annotation: Any) -> bool:
    """Tells whether a type is that of messages."""
    return isinstance(annotation, type) and any(
        c.__name__ == "BaseMessage" and c.__module__.split(".")[0] in ("langchain_core", "graphd")
        for c in annotation.__mro__
    )


def to_dict(message: Any) -> dict[str, Any]:
    """A message as it is stored."""
    if isinstance(message, BaseMessage):
        return message.to_dict()
    fields = message.model_dump()
    return {k: v for k, v in fields.items() if k in ("type", "content") or v not in (None, [], {}, False)}


def from_dict(fields: Mapping[str, Any]) -> Any:
    """A stored message as an object; unknown types stay dicts."""
    kind = fields.get("type")
    if (library := _load_langchain()) is not None:
        name = _OWN[kind].__name__ if kind in _OWN else None
        rest = {k: v for k, v in fields.items() if k != "type"}
        return fields if name is None else getattr(library, name)(**rest)
    if kind not in _OWN:
        return fields
    rest = {k: v for k, v in fields.items() if k != "type"}
    return _OWN[kind](**rest)


def read_stored(fields: Mapping[str, Any]) -> Any:
    """A stored message as an object. What can't be one came from another client, and stays a dict: states with it
    must stay readable."""
    try:
        return from_dict(fields)
    except (KeyError, TypeError, ValueError):
        return fields


def coerce_message(value: Any) -> dict[str, Any]:
    """Reads whatever counts as a message: object, dict, pair or string. Forms of chat APIs are read as LangChain does.

    ValueError, KeyError or NotImplementedError says what is wrong with it.
    """
    if is_message(value):
        return to_dict(value)
    if isinstance(value, str):
        return {"type": "human", "content": value}
    if isinstance(value, Mapping) and _is_stored_form(value):
        return dict(value)
    if (library := _load_langchain()) is not None:
        return to_dict(library.convert_to_messages([value])[0])
    if isinstance(value, Sequence) and len(value) == 2 and isinstance(value[0], str):
        return {"type": _ROLES.get(value[0], value[0]), "content": value[1]}
    if isinstance(value, Mapping):
        fields = dict(value)
        kind = fields.pop("type", None) or fields.pop("role", None)
        if kind is None:
            raise ValueError(f"a message needs a type or a role: {value!r}")
        if not isinstance(kind, str):
            raise ValueError(f"the type of a message must be a text, not {kind!r:.200}")
        return {"type": _ROLES.get(kind, kind), **fields}
    raise NotImplementedError(f"not a message: {value!r}")


def _is_stored_form(fields: Mapping[str, Any]) -> bool:
    """It is what a message is stored as: an object can be made of it."""
    kind = fields.get("type")
    return isinstance(kind, str) and kind in _OWN and is_message(read_stored(fields))


def coerce_written(key: str, value: Any) -> Any:
    """What a program writes to a key of messages, in forms that the server reads; what it reads stays as it is.

    ValueError says which message is none: stored, it would keep the whole state from being read.
    """
    if not isinstance(value, (list, tuple)) or _is_pair(value):
        return _coerce_one(key, 0, value)
    return [_coerce_one(key, number, item) for number, item in enumerate(value)]


def _coerce_one(key: str, number: int, value: Any) -> Any:
    if not (isinstance(value, Mapping) or _is_pair(value)) or _is_stored_form(_read_role(value)):
        return value
    try:
        return coerce_message(value)
    except (KeyError, TypeError, ValueError, NotImplementedError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"the value of {key!r} can't be stored: message {number} is none: {why}") from error


def _read_role(value: Any) -> Mapping[str, Any]:
    """What the server makes of a dict or of a pair; of the role developer LangChain keeps more."""
    fields = dict(value) if isinstance(value, Mapping) else {"role": value[0], "content": value[1]}
    if "type" not in fields and isinstance(role := fields.pop("role", None), str):
        fields["type"] = role if role == "developer" else _ROLES.get(role, role)
    return fields


def _is_pair(value: Any) -> bool:
    """It is a role and a content. Of two texts it is one in a tuple alone; those of a list are two messages."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)


def coerce_messages(value: Any) -> list[dict[str, Any]]:
    """Reads one message or a list of them."""
    if isinstance(value, list):
        return [coerce_message(item) for item in value]
    return [coerce_message(value)]


def merge_messages(left: Any, right: Any) -> list[dict[str, Any]]:
    """Merges messages by id: known ids replace, new ones are appended."""
    current, update = ([_ensure_id(m) for m in coerce_messages(side)] for side in (left, right))
    for at in range(len(update) - 1, -1, -1):
        if update[at]["type"] == "remove" and update[at]["id"] == REMOVE_ALL_MESSAGES:
            return update[at + 1 :]
    merged = {m["id"]: m for m in current}
    gone: set[str] = set()
    for message in update:
        known = message["id"] in merged
        if message["type"] != "remove":
            gone.discard(message["id"])
            merged[message["id"]] = message
        elif known:
            gone.add(message["id"])
        else:
            raise ValueError(f"Attempting to delete a message with an ID that doesn't exist ({message['id']!r})")
    return [m for id, m in merged.items() if id not in gone]


def _ensure_id(message: dict[str, Any]) -> dict[str, Any]:
    return message if message.get("id") else message | {"id": str(uuid.uuid4())}


def add_messages(left: Any = None, right: Any = None, **kwargs: Any) -> Any:
    """The reducer of message lists: merges by id, removes by RemoveMessage.

    As a reducer of a state key it runs in the server; called, it runs here.
    """
    if left is not None and right is not None:
        return [from_dict(m) for m in merge_messages(left, right)]
    if left is not None or right is not None:
        raise ValueError("Must specify non-null arguments for both 'left' and 'right'")

    def partially(left: Any, right: Any) -> Any:
        return add_messages(left, right, **kwargs)

    return partially


def to_objects(values: Iterable[Any]) -> list[Any]:
    """Stored messages as objects; what is none stays as it is."""
    return [read_stored(v) if isinstance(v, Mapping) and "type" in v and "content" in v else v for v in values]
