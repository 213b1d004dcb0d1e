"""Thread ids and namespaces, as programs and as servers write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphd._gen.v1 import payload_pb2 as pb
from graphd.constants import NAMESPACE_SEPARATOR, TASK_SEPARATOR
from graphd.graph.names import public, wire

_ALPHABET = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def wire_thread(prefix: str, thread: Any) -> str:
    """A thread id for the server; ValueError when it can't be one."""
    text = f"{prefix}{thread}"
    if not _ALPHABET.fullmatch(text):
        raise ValueError(f"thread_id {thread!r}: use 1 to {128 - len(prefix)} of A-Z a-z 0-9 _ . : -")
    return text


def levels(namespace: str) -> list[str]:
    """The levels of a namespace written as one string."""
    if not namespace:
        return []
    return [_level(level, wire) for level in namespace.split(NAMESPACE_SEPARATOR)]


def namespace(path: Iterable[str]) -> str:
    """A namespace as one string."""
    return NAMESPACE_SEPARATOR.join(public_levels(path))


def public_levels(path: Iterable[str]) -> tuple[str, ...]:
    """The levels of a namespace, with the names that programs know."""
    return tuple(_level(level, public) for level in path)


def _level(level: str, rename: Any) -> str:
    node, separator, task = level.partition(TASK_SEPARATOR)
    return f"{rename(node)}{separator}{task}"


def checkpoint_ref(configurable: Mapping[str, Any]) -> pb.CheckpointRef:
    """The checkpoint that a config names."""
    return pb.CheckpointRef(
        checkpoint_id=str(configurable.get("checkpoint_id") or ""),
        namespace=levels(str(configurable.get("checkpoint_ns") or "")),
    )
