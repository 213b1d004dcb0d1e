"""Channels of LangGraph whose checkpoints have no value: it is made of earlier writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from graphd.checkpoint.langgraph.history import StoredCheckpoint, find_checkpoints
from graphd.checkpoint.langgraph.thread_log import LogEntry

_COUNTERS = "counters_since_delta_snapshot"  # the metadata that names the channels


def read_delta_history(
    entries: Iterable[LogEntry], checkpoint_id: str | None, channels: Sequence[str], serde: Any
) -> dict[str, Any]:
    """For each channel ``writes``, oldest first, of the ancestors of a checkpoint back to the nearest one that has a
    value of the channel, and that value as ``seed``. Without such an ancestor there is no seed."""
    history: dict[str, Any] = {channel: {"writes": []} for channel in channels}
    open_channels = set(channels)
    lineage = _find_lineage(entries, checkpoint_id)
    next(lineage, None)  # what was written after the checkpoint itself is yet to come
    for stored in lineage if open_channels else ():
        for task, channel, value in reversed(stored.pending_writes()):
            if channel in open_channels:
                history[channel]["writes"].append((task, channel, serde.loads_typed(value)))
        values = serde.loads_typed(stored.saved.value)["channel_values"]
        for channel in open_channels & values.keys():
            history[channel]["seed"] = values[channel]
        open_channels -= values.keys()
        if not open_channels:
            break
    for found in history.values():
        found["writes"].reverse()
    return history


def measure_latest(entries: Iterable[LogEntry], serde: Any) -> int | None:
    """How deep the log must stay for its newest checkpoint and the values of its channels; None without one."""
    depth: int | None = None
    open_channels: set[str] = set()
    for stored in _find_lineage(entries, None):
        if depth is None:
            open_channels = set(serde.loads_typed(stored.saved.metadata).get(_COUNTERS) or ())
        depth = stored.depth
        if open_channels:
            open_channels -= serde.loads_typed(stored.saved.value)["channel_values"].keys()
        if not open_channels:
            break
    return depth


def _find_lineage(entries: Iterable[LogEntry], checkpoint_id: str | None) -> Iterator[StoredCheckpoint]:
    """A checkpoint, or the newest, then its ancestors. Each is in the log before its children."""
    wanted = checkpoint_id
    for stored in find_checkpoints(entries):
        if wanted in (None, stored.saved.checkpoint_id):
            yield stored
            if (wanted := stored.saved.parent_id) is None:
                return
