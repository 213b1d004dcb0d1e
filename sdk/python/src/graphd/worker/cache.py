"""Results of nodes that need not run again for the same input."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from graphd._gen.v1 import worker_task_pb2 as pb

if TYPE_CHECKING:
    from graphd.graph.program import Program
    from graphd.worker.execute import Work


class InMemoryCache:
    """Keeps results in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[bytes, float | None]] = {}

    def read(self, key: str) -> bytes | None:
        """The value of a key, None when it has none or is too old."""
        with self._lock:
            value, until = self._kept.get(key, (None, None))
            return None if until is not None and until < time.monotonic() else value

    def write(self, key: str, value: bytes, ttl: float | None) -> None:
        """Keeps a value for so many seconds, or for ever."""
        with self._lock:
            self._kept[key] = (value, None if ttl is None else time.monotonic() + ttl)

    def drop(self, prefix: str) -> None:
        """Forgets all keys that begin like this."""
        with self._lock:
            self._kept = {k: v for k, v in self._kept.items() if not k.startswith(prefix)}


def prefix_of(program: Program, node: str) -> str:
    """What the keys of a node begin with."""
    return f"{program.name}/{node}/"


def _key(program: Program, work: Work) -> str | None:
    node = program.nodes.get(work.node) if program.cache is not None and not work.is_branch else None
    policy = program.policies(node).cache if node is not None else None
    if policy is None:
        return None
    positional, _ = work.arguments
    key: Any = policy.key_func(*positional)
    return prefix_of(program, work.node) + (key.hex() if isinstance(key, bytes) else str(key))


def look_up(program: Program, work: Work) -> pb.TaskResult | None:
    """The result that the node had for the same input."""
    key = _key(program, work)
    known = program.cache.read(key) if key is not None else None
    if known is None:
        return None
    result = pb.TaskResult.FromString(known)
    result.completed.cached = True
    return result


def keep(program: Program, work: Work, result: pb.TaskResult) -> None:
    """Keeps the result of a node that has run to its end."""
    key = _key(program, work) if result.HasField("completed") else None
    if key is not None:
        policy = program.policies(program.nodes[work.node]).cache
        program.cache.write(key, result.SerializeToString(), policy.ttl if policy else None)
