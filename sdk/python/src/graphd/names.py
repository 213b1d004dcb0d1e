"""Names as programs and as the server write them: nodes, threads, namespaces.

The server reserves node names that begin with two underscores; LangGraph gives
such names to error handlers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphd._gen.v1 import payload_pb2 as pb
from graphd.constants import NAMESPACE_SEPARATOR, TASK_SEPARATOR

HANDLER_PREFIX = "__error_handler__"
DEFAULT_HANDLER = "__default_error_handler__"
_WIRE_PREFIX = "error handler of "
_WIRE_DEFAULT = "default error handler"
# The ids that the server takes. Others are written as _ESCAPED and their bytes, those
# outside of _PLAIN_BYTES as ":" and two hexadecimal digits. An id that is too long then is
# written as _DIGESTED and its digest, which no escaped id begins with. An id that looks like
# one that was escaped is escaped, too.
_ALPHABET = re.compile(r"[A-Za-z0-9_.:-]+")
_LONGEST_ID = 128
_ESCAPED, _DIGESTED = "::", "::::"
_PLAIN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


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
    """A thread id for the server, which takes fewer than programs may use: others are escaped."""
    text = str(thread)
    most = _LONGEST_ID - len(prefix)
    if len(text) <= most and _ALPHABET.fullmatch(text) and public_thread(text) == text:
        return prefix + text
    encoded = text.encode("utf-8", "surrogatepass")
    escaped = _ESCAPED + "".join(chr(b) if b in _PLAIN_BYTES else f":{b:02x}" for b in encoded)
    if len(escaped) > most:
        escaped = _DIGESTED + hashlib.sha256(encoded).hexdigest()
    return prefix + escaped


def public_thread(thread: str) -> str:
    """The thread id that a program used; what the server knows, of a digested one and of one that was not escaped."""
    if not thread.startswith(_ESCAPED) or thread.startswith(_DIGESTED):
        return thread
    parts = thread[len(_ESCAPED) :].split(":")
    try:
        encoded = parts[0].encode() + b"".join(bytes.fromhex(part[:2]) + part[2:].encode() for part in parts[1:])
        text = encoded.decode("utf-8", "surrogatepass")
    except ValueError:  # a client in another language made it
        return thread
    return text if wire_thread("", text) == thread else thread


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


def find_levels(levels: tuple[str, ...], known: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The levels of a graph among those that are known, where they name nodes without their tasks.

    The namespace of a graph that persists names the nodes around it alone.
    """
    nodes = [level.partition(TASK_SEPARATOR)[0] for level in levels]
    if nodes != list(levels):
        return levels
    found = [one for one in known if [level.partition(TASK_SEPARATOR)[0] for level in one] == nodes]
    return levels if levels in found or not found else found[-1]
