"""What of a call travels to its nodes: the context, and the config within it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2

CONFIGURABLE = "__configurable__"
"""Key of the context on the wire below which the config of the caller travels."""
CALLED = "__called__"
"""Key that marks the context of a graph which a node has called with its own."""

_OF_THE_CALL = {"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}


def build_wire_context(context: Any, configurable: Mapping[str, Any]) -> dict[str, Any] | None:
    """The context of a run, and with it what else of the config nodes can see."""
    carried: dict[str, Any] = {}
    if context is not None:
        simpler = context if isinstance(context, Mapping) else codec.to_plain(context)
        carried |= {k: v for k, v in dict(simpler).items() if _has_json(v)}
    seen = {k: v for k, v in configurable.items() if k not in _OF_THE_CALL and not k.startswith("__")}
    seen = {k: v for k, v in seen.items() if _has_json(v)}
    if seen:
        carried[CONFIGURABLE] = seen
    return carried or None


def read_wire_context(payload: payload_pb2.Payload) -> dict[str, Any]:
    """What has arrived with a task; nothing if it is of another shape."""
    value = codec.value_of(payload)
    return value if isinstance(value, dict) else {}


def _has_json(value: Any) -> bool:
    # Connections and the like stay here: a node in this process finds them in
    # the call itself.
    try:
        codec.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
