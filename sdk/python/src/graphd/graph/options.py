"""The arguments of compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CompileOptions:
    """How a graph was compiled."""

    checkpointer: Any = None
    cache: Any = None
    store: Any = None
    interrupt_before: tuple[str, ...] = ()
    interrupt_after: tuple[str, ...] = ()
    name: str | None = None
    server: str | None = None
    version: str = ""
    debug: bool = False
