"""Updates of a state by hand, as the server takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.constants import END
from graphd.declare.program import Program
from graphd.declare.writes import build_gotos, build_update_payload, update_object
from graphd.errors import InvalidUpdateError
from graphd.names import wire_name
from graphd.values.command import Command
from graphd.values.state import StateUpdate

AS_INPUT, AS_NEW_INPUT, AS_COPY = "__input__", "__new_input__", "__copy__"

_ALONE = {
    AS_INPUT: "Cannot apply multiple updates when updating as input",
    AS_COPY: "Cannot copy checkpoint with multiple updates",
    END: "Cannot apply multiple updates when clearing state",
}


def build_supersteps(program: Program, given: Sequence[Sequence[StateUpdate]]) -> list[ts.StateSuperstep]:
    """The supersteps of a call; ValueError or InvalidUpdateError for bad ones."""
    if not given:
        raise ValueError("No supersteps provided")
    if any(not updates for updates in given):
        raise ValueError("No updates provided")
    checked = [[StateUpdate(*update) for update in updates] for updates in given]
    for updates in checked:
        _check_updates(updates)
    return [
        ts.StateSuperstep(updates=[_build_update(program, u) for u in updates])
        for group in checked
        for updates in _split_copy(group)
    ]


def _check_updates(updates: Sequence[StateUpdate]) -> None:
    if len(updates) < 2:
        return
    for update in updates:
        if update.as_node is None:
            raise InvalidUpdateError("as_node is required when applying multiple updates")
        if update.as_node in _ALONE:
            raise InvalidUpdateError(_ALONE[update.as_node])


def _split_copy(updates: list[StateUpdate]) -> Iterator[list[StateUpdate]]:
    """A copy that is changed at once is a copy, and a superstep after it."""
    first = updates[0]
    if first.as_node != AS_COPY or not isinstance(first.values, (list, tuple)) or not first.values:
        yield updates
        return
    yield [StateUpdate(None, AS_COPY)]
    by_node: dict[str | None, list[StateUpdate]] = {}
    for item in first.values:
        if isinstance(item, (str, bytes)) or not isinstance(item, Sequence) or len(item) < 2:
            raise InvalidUpdateError(f"a copy takes a list of (values, as_node), not {item!r}")
        by_node.setdefault(item[1], []).append(StateUpdate(item[0], item[1]))
    changes = [update for group in by_node.values() for update in group]
    _check_updates(changes)
    yield changes


def _build_update(program: Program, update: StateUpdate) -> ts.StateUpdate:
    values: Any = update.values
    write = ts.StateUpdate(as_node=wire_name(update.as_node or ""), task_id=update.task_id or "")
    if isinstance(values, Command):
        if values.graph is not None:
            raise InvalidUpdateError("There is no parent graph")
        write.goto_targets.extend(build_gotos(values.goto))
        values = values.update
    if values is None or update.as_node in (END, AS_COPY):
        write.values.CopyFrom(codec.to_payload(values))
        return write
    if program.function is not None and update.as_node != AS_INPUT:
        write.values.CopyFrom(codec.to_payload(program.function.build_update(values)))
        return write
    taken = update_object(values, program)
    if not program.is_root:
        taken = {k: v for k, v in taken.items() if k in program.channels}
    write.values.CopyFrom(build_update_payload(taken))
    return write
