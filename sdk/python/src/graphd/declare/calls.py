"""Which graphs a node calls, as far as its code shows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

from graphd.declare.compiled_graph import CompiledGraph


def called_graph(target: Any) -> Any:
    """The compiled graph that the code of a node refers to, None without one.

    Only names count, of variables around the function and of globals: a graph
    that is found at run time is called all the same, and is not listed.
    """
    return next(_find_graphs(target, set()), None)


def _find_graphs(target: Any, seen: set[int]) -> Iterator[Any]:
    """The graphs that some code refers to, itself before the tasks that it calls."""
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = getattr(type(target), "__call__", target)  # noqa: B004 - its code is wanted
    try:
        names = inspect.getclosurevars(target)
    except (TypeError, ValueError):  # a builtin, or a variable that is not set yet
        return
    seen.add(id(target))
    found = (*names.nonlocals.values(), *names.globals.values())
    yield from (value for value in found if isinstance(value, CompiledGraph))
    for value in found:
        inner = getattr(value, "__wrapped__", None)  # a task is its function, wrapped
        if inspect.isroutine(inner) and id(inner) not in seen:
            yield from _find_graphs(inner, seen)
