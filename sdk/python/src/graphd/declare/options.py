"""The arguments of compile, and breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphd.security import Security
from graphd.values.literals import All
from graphd.values.worker_limits import WorkerLimits


@dataclass(frozen=True)
class CompileOptions:
    """How a graph was compiled."""

    checkpointer: Any = None
    cache: Any = None
    store: Any = None
    interrupt_before: tuple[str, ...] = ()
    interrupt_after: tuple[str, ...] = ()
    name: str | None = None
    part_of: str | None = None
    server: str | None = None
    security: Security | None = None
    worker: bool | WorkerLimits = True
    version: str = ""
    debug: bool = False
    drift: str | None = None
    drift_ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        saver = self.checkpointer
        if not (saver is None or isinstance(saver, bool)) and isinstance(saver, (type, str, bytes, int, float)):
            raise TypeError(_describe_no_saver(saver))


def _describe_no_saver(given: Any) -> str:
    kind = type(given).__name__
    text = f"Invalid checkpointer provided. Expected a saver, `True`, `False`, or `None`. Received {kind}."
    if isinstance(given, type):
        return f"{text} A saver is an object: {given.__name__}()"
    if isinstance(given, str):
        return f"{text} The address of a server is compile(server={given!r})"
    return text


def node_names(given: All | Sequence[str] | None) -> tuple[str, ...]:
    """Breakpoints as the server takes them."""
    return ("*",) if given == "*" else tuple(given or ())
