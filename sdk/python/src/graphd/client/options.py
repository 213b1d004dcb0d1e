"""The arguments of calls, and how configs combine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from graphd.client.stream_format import StreamFormat
from graphd.runtime.callbacks import check_callbacks, merge_callbacks
from graphd.runtime.info import RunControl
from graphd.values.literals import Durability


@dataclass(frozen=True)
class CallOptions:
    """The arguments of a call that do not name what to run."""

    stream_format: StreamFormat
    context: Any = None
    output_keys: str | Sequence[str] | None = None
    interrupt_before: tuple[str, ...] = ()
    interrupt_after: tuple[str, ...] = ()
    durability: str | None = None
    control: RunControl | None = None
    subgraphs: bool = False
    gives_settings: bool = False
    """The call has a context or breakpoints, be they empty."""


def check_durability(given: str | None) -> str | None:
    """The durability of a call; ValueError for one that there is not."""
    if given is not None and given not in get_args(Durability):
        raise ValueError(f"unknown durability {given!r}; there are {', '.join(get_args(Durability))}")
    return given


def merge_configs(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any]:
    """Two configs as one; metadata and configurable are merged key by key, tags and callbacks are added.

    Raises TypeError for callbacks that are none, and MissingPackageError for callbacks without langchain-core.
    """
    merged = dict(base or {}) | {k: v for k, v in (over or {}).items() if v is not None}
    if base and over and base.get("tags") and over.get("tags"):
        merged["tags"] = [*base["tags"], *over["tags"]]
    if base and over and base.get("callbacks"):
        check_callbacks(over)
        merged["callbacks"] = merge_callbacks(base["callbacks"], over.get("callbacks"))
    for part in ("configurable", "metadata"):
        if part in (base or {}) and part in (over or {}):
            merged[part] = dict((base or {})[part] or {}) | dict((over or {})[part] or {})
    check_callbacks(merged)
    return merged
