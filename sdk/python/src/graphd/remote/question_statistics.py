"""What became of questions: whether people keep up, and how questions of a node were answered."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.remote.fields import read_time, read_value
from graphd.transport.unary import Call


@dataclass(frozen=True)
class QuestionCounts:
    """Numbers of questions. One counts when it is asked, and once more when it ends."""

    asked: int
    answered: int
    """By people, the dismissed ones among them."""
    answered_late: int
    """Those of ``answered`` that came after the first step, or the expiry, was due."""
    defaulted: int
    """The default counts, because no answer came in time."""
    expired: int
    """No answer came in time, and there was no default."""
    withdrawn: int
    """The run was cancelled, or the question became void."""


@dataclass(frozen=True)
class QuestionSeries:
    """What became of some questions."""

    total: QuestionCounts
    median_wait: datetime.timedelta | None
    """Until an answer, as exact as the buckets of the server; None without an answer."""
    p95_wait: datetime.timedelta | None
    intervals: Sequence[QuestionCounts]
    """One after the other, from ``QuestionStatistics.begins_at`` on."""


@dataclass(frozen=True)
class QuestionStatistics:
    """What became of questions in the last 24 hours, as far as the server that answered did it."""

    counts_since: datetime.datetime | None
    """When that server began to count."""
    begins_at: datetime.datetime | None
    interval: datetime.timedelta
    all: QuestionSeries
    groups: Mapping[str, QuestionSeries]
    """By group; "" has the questions of no group."""
    others: QuestionSeries | None
    """Groups beyond the limit of the server."""
    is_partial: bool
    """Questions are missing, because the server counts no more graphs, groups or tenants."""


@dataclass(frozen=True)
class DecisionCount:
    """How often a decision was made."""

    decision: Any
    count: int


@dataclass(frozen=True)
class AnswerStatistics:
    """How the questions of a node were answered, as far as the server that answered did it."""

    counts_since: datetime.datetime | None
    answered: int
    dismissed: int
    defaulted: int
    expired: int
    decisions: Sequence[DecisionCount]
    """The most frequent first."""
    median_wait: datetime.timedelta | None
    p95_wait: datetime.timedelta | None


def read_statistics_of(interval: datetime.timedelta) -> Call[QuestionStatistics]:
    """Reads what became of questions."""
    request = ins.GetInterruptStatisticsRequest()
    request.interval.FromTimedelta(interval)
    return Call(lambda s: s.interrupts.GetInterruptStatistics, request, _read_statistics)


def read_answers_of(graph: str, node: str) -> Call[AnswerStatistics]:
    """Reads how the questions of a node were answered."""
    request = ins.GetAnswerStatisticsRequest(graph=graph, node=node)
    return Call(lambda s: s.interrupts.GetAnswerStatistics, request, _read_answers)


def _read_statistics(found: ins.InterruptStatistics) -> QuestionStatistics:
    return QuestionStatistics(
        counts_since=read_time(found, "counts_since"),
        begins_at=read_time(found, "begin_time"),
        interval=found.interval.ToTimedelta(),
        all=_read_series(found.all),
        groups={one.group: _read_series(one.series) for one in found.groups},
        others=_read_series(found.others) if found.HasField("others") else None,
        is_partial=found.partial,
    )


def _read_series(found: ins.InterruptStatistics.Series) -> QuestionSeries:
    return QuestionSeries(
        total=_read_counts(found.total),
        median_wait=_read_wait(found, "median_wait"),
        p95_wait=_read_wait(found, "p95_wait"),
        intervals=[_read_counts(one) for one in found.intervals],
    )


def _read_counts(found: ins.InterruptStatistics.Counts) -> QuestionCounts:
    return QuestionCounts(
        found.asked, found.answered, found.answered_late, found.defaulted, found.expired, found.withdrawn
    )


def _read_answers(found: ins.AnswerStatistics) -> AnswerStatistics:
    return AnswerStatistics(
        counts_since=read_time(found, "counts_since"),
        answered=found.answered,
        dismissed=found.dismissed,
        defaulted=found.defaulted,
        expired=found.expired,
        decisions=[DecisionCount(read_value(one, "value"), one.count) for one in found.decisions],
        median_wait=_read_wait(found, "median_wait"),
        p95_wait=_read_wait(found, "p95_wait"),
    )


def _read_wait(found: Any, field: str) -> datetime.timedelta | None:
    wait: datetime.timedelta = getattr(found, field).ToTimedelta()
    return wait if found.HasField(field) else None


__all__ = [
    "AnswerStatistics",
    "DecisionCount",
    "QuestionCounts",
    "QuestionSeries",
    "QuestionStatistics",
    "read_answers_of",
    "read_statistics_of",
]
