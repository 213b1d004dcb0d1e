"""Which graphs a node calls, as far as its code shows."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from graphd.declare.compiled_graph import CompiledGraph


def called_graph(target: Any) -> Any:
    """The compiled graph that the code of a node refers to, None without one.

    Only names count, of variables around the function and of globals: a graph
    that is found at run time is called all the same, and is not listed.
    """
    while isinstance(target, functools.partial):
        target = target.func
    if not inspect.isroutine(target):
        target = getattr(type(target), "__call__", target)  # noqa: B004 - its code is wanted
    try:
        names = inspect.getclosurevars(target)
    except (TypeError, ValueError):  # a builtin, or a variable that is not set yet
        return None
    found = (*names.nonlocals.values(), *names.globals.values())
    return next((value for value in found if isinstance(value, CompiledGraph)), None)
