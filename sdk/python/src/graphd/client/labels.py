"""Metadata as labels: the server keeps strings, programs use any scalar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphd import codec

_TYPED = "graphd.typed"
EXIT = "graphd.exit"
"""Marks what one call with ``durability="exit"`` has stored; see history.py."""

_OWN = {_TYPED, EXIT}
_INTERNAL = {"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"}


def to_labels(config: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a run: its metadata and the scalars of its config."""
    configurable = config.get("configurable") or {}
    if not (configurable or config.get("metadata") or config.get("run_id")):
        return {}
    given = {k: v for k, v in configurable.items() if k not in _INTERNAL and not k.startswith("__")}
    given = {k: v for k, v in given.items() if isinstance(v, (str, int, float, bool))}
    given |= {k: v for k, v in (config.get("metadata") or {}).items() if not k.startswith("__")}
    if config.get("run_id"):
        given.setdefault("run_id", str(config["run_id"]))
    typed = sorted(k for k, v in given.items() if not isinstance(v, str))
    labels = {k: v if isinstance(v, str) else codec.dumps(v) for k, v in given.items()}
    return labels | ({_TYPED: ",".join(typed)} if typed else {})


def from_labels(labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata that was stored as labels."""
    typed = set(filter(None, labels.get(_TYPED, "").split(",")))
    return {k: codec.loads(v) if k in typed else v for k, v in labels.items() if k not in _OWN}
