"""Groups events of a stream whose order means nothing: those of tasks that run side by side."""

from __future__ import annotations

from typing import Any

ADDED_MODES = ("values", "tasks")
"""Modes that a recording listens to beside those of the call: their events tell supersteps apart."""


def group_events(events: list[tuple[tuple[str, ...], str, Any]], shown: list[bool]) -> list[int]:
    """The sizes of the groups among the shown events, in order; no group is empty."""
    sizes: list[int] = []
    separate, begins = True, False
    for (namespace, mode, data), is_shown in zip(events, shown, strict=True):
        alone = not namespace and _is_boundary(mode, data)
        starts = not namespace and mode == "tasks" and "input" in data
        separate |= alone or starts or begins
        begins = starts
        if is_shown:
            if separate:
                sizes.append(1)
            else:
                sizes[-1] += 1
            separate = False
        separate |= alone
    return sizes


def _is_boundary(mode: str, data: Any) -> bool:
    """Whether the event of a whole graph stands between two supersteps."""
    if mode == "values":
        return not (isinstance(data, dict) and "__interrupt__" in data)
    return mode == "checkpoints" or (mode == "debug" and data["type"] == "checkpoint")
