"""How many questions are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.remote.fields import read_word
from graphd.remote.question_filter import build_filter
from graphd.transport.unary import Call

_MOST = 32  # filters of one call


class CountFilter(TypedDict, total=False):
    """Which open questions are counted: one of these conditions, or ``{}`` for all questions."""

    graph: str
    assignee: str
    """One of the users who should answer."""
    group: str
    claimed_by: str
    priority: Literal["low", "high", "urgent"]
    mine: bool
    """Those for the caller, for a group of the caller, or claimed by the caller."""


@dataclass(frozen=True)
class QuestionCount:
    """How many questions are open."""

    open: int
    precision: str
    """"exact". "at_most": so many or fewer, as a question may count for a user and for a group of ``mine``, and a claim
    that has ended counts until its question changes. "at_least": so many or more, for a caller who may see only some
    questions: these are read to be counted, 500 at most."""


def count_questions(filters: Iterable[CountFilter]) -> Call[list[QuestionCount]]:
    """Counts open questions, with one count for each filter."""
    given = list(filters)
    if not 1 <= len(given) <= _MOST:
        raise ValueError(f"filters has {len(given)} entries: want 1 to {_MOST}")
    written = [_write_filter(f"filters[{number}]", one) for number, one in enumerate(given)]
    return Call(lambda s: s.interrupts.CountInterrupts, ins.CountInterruptsRequest(filters=written), _read_counts)


def count_one(**conditions: Any) -> Call[QuestionCount]:
    """Counts open questions."""
    written = _write_filter("count()", conditions)
    request = ins.CountInterruptsRequest(filters=[written])
    return Call(lambda s: s.interrupts.CountInterrupts, request, lambda r: _read_counts(r)[0])


def _write_filter(what: str, given: Mapping[str, Any]) -> str:
    """A filter that the server counts without reading questions."""
    wanted = CountFilter.__annotations__
    if not isinstance(given, Mapping) or not wanted.keys() >= given.keys():
        raise TypeError(f"{what} is {given!r}: want a dict with one of {', '.join(wanted)}, or {{}} for all questions")
    conditions = {name: value for name, value in given.items() if value is not None and value is not False}
    if len(conditions) > 1:
        raise ValueError(f"{what} has {' and '.join(conditions)}: want one condition, or none for all questions")
    if conditions.get("priority") == "normal":
        raise ValueError(f"{what}: priority is 'normal', which most questions have: want low, high or urgent")
    return build_filter(**conditions)


def _read_counts(response: ins.CountInterruptsResponse) -> list[QuestionCount]:
    kind = ins.CountInterruptsResponse.Precision
    return [QuestionCount(one.count, read_word(kind, one.precision, "PRECISION_")) for one in response.counts]


__all__ = ["CountFilter", "QuestionCount", "count_one", "count_questions"]
