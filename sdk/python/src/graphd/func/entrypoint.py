"""Makes a function a graph that runs, pauses and goes on."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from graphd.compiled import CompiledStateGraph
from graphd.declare.actions import read_action
from graphd.declare.functional import FunctionBuilder, ValueTypes
from graphd.declare.nodes import Policies, retry_policies
from graphd.declare.options import CompileOptions
from graphd.runtime.drift import Drift, check_drift
from graphd.runtime.info import ContextT
from graphd.security import Security
from graphd.values.literals import Checkpointer
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy

R = TypeVar("R")
S = TypeVar("S")


class entrypoint(Generic[ContextT]):
    """Makes the decorated function a graph.

    The function takes one input, and by parameters of these names ``config``, ``runtime``, ``previous``, ``writer``
    and ``store``; it may be async. ``previous`` is what the last run on the thread returned, or kept by
    ``entrypoint.final``; None at first, and without a checkpointer. Values are stored as JSON, and read back with the
    types of the annotations; messages stay messages.

    ``retry_policy``, ``cache_policy`` and ``timeout`` are for the function as a whole. ``checkpointer``, ``server``,
    ``name``, ``security``, ``worker``, ``version``, ``drift`` and ``drift_ignore`` say the same as in
    ``StateGraph.compile``; the last seven are graphd's own.

    Raises ValueError for a function without a parameter, NotImplementedError for a generator, and TypeError for an
    ``entrypoint.final`` with one type.
    """

    def __init__(
        self,
        checkpointer: Checkpointer = None,
        store: Any = None,
        cache: Any = None,
        context_schema: type[ContextT] | None = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        *,
        name: str | None = None,
        server: str | None = None,
        security: Security | None = None,
        worker: bool = True,
        version: str | None = None,
        drift: Drift | None = None,
        drift_ignore: Sequence[str] = (),
        **older: Any,
    ) -> None:
        context_schema = context_schema or older.pop("config_schema", None)
        retry_policy = retry_policy or older.pop("retry", None)
        if older:
            raise TypeError(f"entrypoint got unknown arguments: {', '.join(sorted(older))}")
        self._context_schema = context_schema
        self._policies = Policies(retry_policies(retry_policy), cache_policy, TimeoutPolicy.coerce(timeout))
        self._options = CompileOptions(
            checkpointer=checkpointer,
            cache=cache,
            store=store,
            name=name,
            server=server,
            security=security,
            worker=worker,
            version=version or "",
            drift=drift,
            drift_ignore=check_drift(drift, drift_ignore),
        )

    @dataclass(frozen=True, kw_only=True, slots=True)
    class final(Generic[R, S]):
        """Returned in place of a value: the caller gets ``value``, the next run gets ``save`` as ``previous``."""

        value: R
        save: S

    def __call__(self, func: Callable[..., Any]) -> CompiledStateGraph:
        """The graph; its methods are those of a compiled StateGraph."""
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise NotImplementedError("an entrypoint can't be a generator; use get_stream_writer() to send items")
        action = read_action(func)
        if not action.takes_state:
            raise ValueError("an entrypoint takes at least one parameter, its input")
        action = dataclasses.replace(action, name=getattr(func, "__name__", action.name))
        builder = FunctionBuilder(action, _read_types(func), self._policies, _split_result, self._context_schema)
        return CompiledStateGraph(builder, self._options)


def _split_result(result: Any) -> tuple[Any, Any]:
    """What the caller gets, and what is kept for the next run."""
    return (result.value, result.save) if isinstance(result, entrypoint.final) else (result, result)


def _read_types(func: Callable[..., Any]) -> ValueTypes:
    hints = _type_hints(func)
    first = next(iter(inspect.signature(func).parameters))
    output = saved = hints.get("return", Any)
    if output is entrypoint.final:
        output = saved = Any
    elif get_origin(output) is entrypoint.final:
        if len(get_args(output)) != 2:
            raise TypeError("entrypoint.final takes two types, of the value and of what is saved: final[int, str]")
        output, saved = get_args(output)
    return ValueTypes(hints.get(first, Any), output, hints.get("previous", saved))


def _type_hints(func: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(func)
    except Exception:  # names that can't be resolved say nothing
        return {}


__all__ = ["entrypoint"]
