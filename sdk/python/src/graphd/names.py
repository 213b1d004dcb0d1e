"""Names as programs and as the server write them: nodes, threads, namespaces.

The server reserves node names that begin with two underscores; LangGraph gives
such names to error handlers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphd._gen.v1 import payload_pb2 as pb
from graphd.constants import NAMESPACE_SEPARATOR, TASK_SEPARATOR

HANDLER_PREFIX = "__error_handler__"
DEFAULT_HANDLER = "__default_error_handler__"
_WIRE_PREFIX = "error handler of "
_WIRE_DEFAULT = "default error handler"
_ALPHABET = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def wire_name(node: str) -> str:
    """The name of a node in the server."""
    if node == DEFAULT_HANDLER:
        return _WIRE_DEFAULT
    if node.startswith(HANDLER_PREFIX):
        return _WIRE_PREFIX + node[len(HANDLER_PREFIX) :]
    return node


def public_name(node: str) -> str:
    """The name of a node in the program."""
    if node == _WIRE_DEFAULT:
        return DEFAULT_HANDLER
    if node.startswith(_WIRE_PREFIX):
        return HANDLER_PREFIX + node[len(_WIRE_PREFIX) :]
    return node


def wire_thread(prefix: str, thread: Any) -> str:
    """A thread id for the server; ValueError when it can't be one."""
    text = f"{prefix}{thread}"
    if not _ALPHABET.fullmatch(text):
        raise ValueError(f"thread_id {thread!r}: use 1 to {128 - len(prefix)} of A-Z a-z 0-9 _ . : -")
    return text


def parse_namespace(namespace: str) -> list[str]:
    """The levels of a namespace written as one string."""
    if not namespace:
        return []
    return wire_levels(namespace.split(NAMESPACE_SEPARATOR))


def wire_levels(path: Iterable[str]) -> list[str]:
    """The levels of a namespace, with the names that the server knows."""
    return [_rename_level(level, wire_name) for level in path]


def format_namespace(path: Iterable[str]) -> str:
    """A namespace as one string."""
    return NAMESPACE_SEPARATOR.join(public_levels(path))


def public_levels(path: Iterable[str]) -> tuple[str, ...]:
    """The levels of a namespace, with the names that programs know."""
    return tuple(_rename_level(level, public_name) for level in path)


def _rename_level(level: str, rename: Any) -> str:
    node, separator, task = level.partition(TASK_SEPARATOR)
    return f"{rename(node)}{separator}{task}"


def checkpoint_ref(configurable: Mapping[str, Any]) -> pb.CheckpointRef:
    """The checkpoint that a config names."""
    return pb.CheckpointRef(
        checkpoint_id=str(configurable.get("checkpoint_id") or ""),
        namespace=parse_namespace(str(configurable.get("checkpoint_ns") or "")),
    )
