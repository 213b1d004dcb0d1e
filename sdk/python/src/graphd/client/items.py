"""What streams are made of: the modes that can be asked for, and the items that show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphd._gen.v1 import event_pb2 as pb
from graphd.constants import TASK_EVENT

FINAL = "final"
"""A mode of our own: nothing on the way, the state at the end."""

_CHANNELS = {
    "values": (pb.CHANNEL_VALUES,),
    "updates": (pb.CHANNEL_UPDATES, pb.CHANNEL_CUSTOM),
    "messages": (pb.CHANNEL_MESSAGES, pb.CHANNEL_UPDATES, pb.CHANNEL_VALUES, pb.CHANNEL_TASKS, pb.CHANNEL_CUSTOM),
    "custom": (pb.CHANNEL_CUSTOM,),
    "tasks": (pb.CHANNEL_TASKS, pb.CHANNEL_UPDATES, pb.CHANNEL_CUSTOM),
    "checkpoints": (pb.CHANNEL_DEBUG,),
    "debug": (pb.CHANNEL_DEBUG, pb.CHANNEL_UPDATES, pb.CHANNEL_CUSTOM),
}


def filter_of(modes: Sequence[str], *, subgraphs: bool, some_keys: bool, checkpoints: bool = False) -> pb.EventFilter:
    """The events that the modes need, and those of checkpoints where the reader sets the pace."""
    if list(modes) == [FINAL]:
        return pb.EventFilter(channels=[pb.CHANNEL_CUSTOM], custom_names=["nothing"], depth=0)
    channels = sorted({c for mode in modes for c in _CHANNELS[mode]} | ({pb.CHANNEL_UPDATES} if some_keys else set()))
    if checkpoints and pb.CHANNEL_DEBUG not in channels:
        channels = sorted({*channels, pb.CHANNEL_CHECKPOINTS})
    # Tasks that the code of nodes calls are told of in custom events.
    names = [] if "custom" in modes else [TASK_EVENT]
    return pb.EventFilter(channels=channels, custom_names=names, depth=None if subgraphs else 0)


class Item:
    """One thing to yield: its mode, where it happened, and its payload."""

    __slots__ = ("data", "interrupts", "levels", "mode")

    def __init__(self, mode: str, levels: tuple[str, ...], data: Any, interrupts: tuple[Any, ...] = ()) -> None:
        self.mode, self.levels, self.data, self.interrupts = mode, levels, data, interrupts


def select_keys(state: Any, keys: str | Sequence[str] | None) -> Any:
    """The part of a state that a call shows: some keys, the value of a single one, or with None all of it."""
    if keys is None or not isinstance(state, dict):
        return state
    if isinstance(keys, str):
        return state.get(keys)
    return {k: state[k] for k in keys if k in state}
