"""Events of calls: all that tell supersteps apart, those that a call shows, and groups whose order means nothing."""

from __future__ import annotations

from typing import Any

from tests.conformance.steps import Player

Event = tuple[tuple[str, ...], str, Any]
"""A namespace, a mode, and what shows."""

ADDED_MODES = ("values", "tasks")
"""Modes that a recording listens to beside those of the call: their events tell supersteps apart."""


def listen(player: Player, do: dict[str, Any]) -> tuple[list[Event], list[bool], BaseException | None]:
    """The events of a call in all modes that are needed, which of them the call shows, and how it failed."""
    asked = [do["mode"]] if isinstance(do["mode"], str) else do["mode"]
    modes = list(dict.fromkeys([*asked, *ADDED_MODES]))
    wide = {k: v for k, v in do.items() if k not in ("bind", "version")} | {"mode": modes, "subgraphs": True}
    items, error = player.run(wide)
    events = [(tuple(ns), mode, data) for ns, mode, data in items]
    return events, [mode in asked and (not ns or "subgraphs" in do) for ns, mode, _ in events], error


def format_event(do: dict[str, Any], event: Event) -> Any:
    """An event in the form that the call asks for."""
    namespace, mode, data = event
    if do.get("version") == "v2":
        part: dict[str, Any] = {"type": mode, "ns": list(namespace), "data": data}
        if mode == "values":
            asked = data.get("__interrupt__", []) if isinstance(data, dict) else []
            part["data"] = {k: v for k, v in data.items() if k != "__interrupt__"} if asked else data
            part["interrupts"] = asked
        return part
    several = [mode] if isinstance(do["mode"], list) else []
    where = [list(namespace)] if "subgraphs" in do else []
    return [*where, *several, data] if where or several else data


def group_events(events: list[Event], shown: list[bool]) -> list[int]:
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
