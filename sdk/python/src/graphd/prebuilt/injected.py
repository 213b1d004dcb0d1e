"""Arguments of tools that the graph fills in, and no model sees."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from graphd.runtime.task import current_task


def _langchain_base(name: str) -> type:
    """LangChain's class of that name, so that its schemas leave the argument
    out; without LangChain there are no such schemas."""
    try:
        found: type = getattr(importlib.import_module("langchain_core.tools.base"), name)
        return found
    except (ImportError, AttributeError):
        return object


class InjectedState(_langchain_base("InjectedToolArg")):  # type: ignore[misc]
    """Marks an argument that is the state of the graph, or one key of it."""

    def __init__(self, field: str | None = None) -> None:
        self.field = field


class InjectedStore(_langchain_base("InjectedToolArg")):  # type: ignore[misc]
    """Marks an argument that is the store the graph was compiled with."""


@dataclass
class ToolRuntime(_langchain_base("_DirectlyInjectedToolArg")):  # type: ignore[misc]
    """What a tool can know of the run that called it."""

    state: Any
    context: Any
    config: dict[str, Any]
    stream_writer: Callable[[Any], None]
    tool_call_id: str | None
    store: Any


Fill = Callable[[Any, str], Any]
"""Makes an argument from the state and the id of the call."""


def find_injections(function: Callable[..., Any]) -> dict[str, Fill]:
    """The arguments of a function that are filled in, by name."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # annotations that can't be read mark nothing
        return {}
    return {name: fill for name, hint in hints.items() for fill in _find_fills(hint)}


def _find_fills(hint: Any) -> Iterator[Fill]:
    # By name: the markers may be LangGraph's, LangChain's or these.
    bare = get_origin(hint) or hint
    if getattr(bare, "__name__", "") == "ToolRuntime":
        yield lambda state, call: build_runtime(bare, state, call)
    for mark in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        name = (mark if isinstance(mark, type) else type(mark)).__name__
        if name == "InjectedState":
            yield _read_state_part(getattr(mark, "field", None))
        elif name == "InjectedStore":
            yield lambda state, call: build_runtime(ToolRuntime, state, call).store
        elif name == "InjectedToolCallId":
            yield lambda state, call: call


def _read_state_part(field: str | None) -> Fill:
    def part(state: Any, call: str) -> Any:
        if not field:
            return state
        return state[field] if isinstance(state, Mapping) else getattr(state, field)

    return part


def build_runtime(kind: Any, state: Any, call: str) -> Any:
    """A ToolRuntime, or one of LangGraph, for a call of the current task."""
    task = current_task()
    runtime = task.runtime if task is not None else None
    return kind(
        state=state,
        context=runtime.context if runtime else None,
        config=task.config if task is not None else {},
        stream_writer=runtime.stream_writer if runtime else lambda _: None,
        tool_call_id=call,
        store=runtime.store if runtime else None,
    )


__all__ = ["InjectedState", "InjectedStore", "ToolRuntime", "build_runtime", "find_injections"]
