"""Traces of OpenTelemetry: spans around tasks, and the trace context of calls. Nothing where no program uses it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from graphd.packages import imported_attribute, is_installed

_CONTEXT = "opentelemetry.trace.propagation.tracecontext"


def may_be_traced() -> bool:
    """The API of OpenTelemetry is installed."""
    return is_installed("opentelemetry.trace")


def read_current() -> list[tuple[str, str]]:
    """The W3C trace context of the code that runs, as headers; none outside of all spans."""
    if imported_attribute("opentelemetry.trace", "get_current_span") is None:
        return []
    carrier: dict[str, str] = {}
    _load_propagator().inject(carrier)
    return list(carrier.items())


class TaskSpan:
    """The span of a task, which may be none."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note_failure(self, kind: str) -> None:
        """The task has failed with an error of a type. Its text may have values, and is no part of a span."""
        if self._span is None:
            return
        trace = importlib.import_module("opentelemetry.trace")
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, kind))


@contextlib.contextmanager
def trace_task(name: str, carrier: Mapping[str, str], attributes: Mapping[str, str | int]) -> Iterator[TaskSpan]:
    """A span around the code of a task, inside that of the server. The code sees it as the current one."""
    if imported_attribute("opentelemetry.trace", "get_tracer") is None:
        yield TaskSpan()
        return
    trace = importlib.import_module("opentelemetry.trace")
    around = _load_propagator().extract(dict(carrier)) if carrier else None
    with trace.get_tracer("graphd").start_as_current_span(
        name,
        context=around,
        kind=trace.SpanKind.CONSUMER,
        attributes=dict(attributes),
        record_exception=False,  # its text may have values
        set_status_on_exception=False,
    ) as span:
        yield TaskSpan(span)


def _load_propagator() -> Any:
    return importlib.import_module(_CONTEXT).TraceContextTextMapPropagator()


__all__ = ["TaskSpan", "may_be_traced", "read_current", "trace_task"]
