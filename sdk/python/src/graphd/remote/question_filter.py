"""Which questions a list or a watch is about: the arguments of programs as a filter of the server."""

from __future__ import annotations

import datetime
from typing import Any, Literal

from graphd.names import wire_name, wire_thread
from graphd.remote.fields import write_filter
from graphd.values.steps import check_priority

Due = datetime.datetime | datetime.timedelta
Order = Literal["created", "due"]

_ORDERS = {"created": "create_time", "due": "due_time"}
_FIRST_YEAR, _LAST_YEAR = 1678, 2261  # those that every store puts in order


def build_filter(
    *,
    thread_id: str | None = None,
    graph: str | None = None,
    node: str | None = None,
    reason: str | None = None,
    assignee: str | None = None,
    group: str | None = None,
    claimed_by: str | None = None,
    priority: str | None = None,
    mine: bool = False,
    due_before: Due | None = None,
    state: str | None = None,
) -> str:
    """The filter for questions that fit all arguments; TypeError and ValueError name the wrong one."""
    named = {"graph": graph, "node": node, "reason": reason, "assignee": assignee}
    named |= {"group": group, "claimed_by": claimed_by, "state": state}
    for argument, given in named.items():
        _check_name(argument, given)
    check_priority(priority)
    if not isinstance(mine, bool):
        raise TypeError(f"mine is {mine!r}: want True for the questions of the caller, or False for those of all")
    conditions = named | {
        "thread_id": wire_thread("", thread_id) if thread_id is not None else None,
        "node": wire_name(node) if node is not None else None,
        "priority": priority.upper() if priority is not None else None,
        "mine": "true" if mine else None,
        "state": state.upper() if state is not None else None,
    }
    parts = [write_filter(conditions)]
    if due_before is not None:
        parts.append(f'due < "{_read_moment(due_before).isoformat()}"')
    return " AND ".join(filter(None, parts))


def read_order(order_by: Order | None) -> str:
    """The order of a list, as the server takes it; "" for the one that it chooses."""
    if order_by is None:
        return ""
    if order_by not in _ORDERS:
        raise ValueError(f"order_by is {order_by!r}: want 'created', oldest first, or 'due', the next due first")
    return _ORDERS[order_by]


def _check_name(argument: str, given: Any) -> None:
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{argument} is {given!r}: want a text")
    if given == "":
        raise ValueError(f"{argument} is '': want a name, or None for any")


def _read_moment(due_before: Any) -> datetime.datetime:
    """The time in UTC that is meant."""
    if not isinstance(due_before, Due):
        raise TypeError(f"due_before is {due_before!r}: want a datetime with a time zone, or a timedelta from now")
    try:
        moment = _add_to_now(due_before).astimezone(datetime.timezone.utc)
    except OverflowError:
        moment = datetime.datetime.min
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"due_before is {due_before!r}: want a time of the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment


def _add_to_now(due_before: Due) -> datetime.datetime:
    if isinstance(due_before, datetime.timedelta):
        return datetime.datetime.now(datetime.timezone.utc) + due_before
    if due_before.utcoffset() is None:
        raise ValueError(f"due_before is {due_before!r}: want a datetime with a time zone, or a timedelta from now")
    return due_before


__all__ = ["Due", "Order", "build_filter", "read_order"]
