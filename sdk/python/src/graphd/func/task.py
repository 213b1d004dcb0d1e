"""Makes a function a task: it runs once, and its result is kept."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, get_type_hints, overload

from graphd.codec import decoder_of
from graphd.declare.nodes import retry_policies
from graphd.func.call import TaskDeclaration, start_call
from graphd.func.result import TaskFuture
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy

P = ParamSpec("P")
T = TypeVar("T")


class TaskFunction(Generic[P, T]):
    """A function that runs as a task of the node or entrypoint that calls it."""

    def __init__(self, func: Callable[P, Any], declared: TaskDeclaration) -> None:
        functools.update_wrapper(self, func)  # first: it takes over the attributes of an object
        self.func, self.declared = func, declared

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Starts the task; RuntimeError outside of nodes and entrypoints.

        In async code the future is one to await, elsewhere it has ``result()``.
        """
        future: TaskFuture[T] = start_call(self.declared, args, kwargs)
        return future

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A task that is a method."""
        return self if instance is None else functools.partial(self, instance)

    def clear_cache(self, cache: Any) -> None:
        """Forgets the cached results of the task."""
        if self.declared.cache is not None:
            cache.drop(self.declared.cache_prefix)

    async def aclear_cache(self, cache: Any) -> None:
        """Like clear_cache."""
        self.clear_cache(cache)


class TaskDecorator(Protocol):
    """What ``task`` with arguments returns."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> TaskFunction[P, T]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> TaskFunction[P, T]: ...


@overload
def task(
    func: None = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **older: Any,
) -> TaskDecorator: ...


@overload
def task(func: Callable[P, Coroutine[Any, Any, T]]) -> TaskFunction[P, T]: ...


@overload
def task(func: Callable[P, T]) -> TaskFunction[P, T]: ...


def task(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **older: Any,
) -> Any:
    """Makes a plain or async function a task.

    A call inside of an entrypoint, a node or another task returns a future. The result is stored when the task ends: a
    task that has ended never runs again, whatever becomes of the code that called it. Calls are matched by the name of
    the task and their order. The result is JSON, and read back with the type that the function is annotated to return;
    messages stay messages. A task that raises has no record, and runs again when its caller does.

    ``retry_policy`` repeats it within the call, ``cache_policy`` shares results between runs through the ``cache`` of
    the graph, ``timeout`` (seconds, of async tasks) raises NodeTimeoutError; ValueError is raised for that of a plain
    function.
    """
    retry_policy = retry_policy or older.pop("retry", None)
    if older:
        raise TypeError(f"task got unknown arguments: {', '.join(sorted(older))}")
    policy = TimeoutPolicy.coerce(timeout)

    def decorate(function: Callable[..., Any]) -> TaskFunction[..., Any]:
        called = name or _name_of(function)
        is_async = _is_async(function)
        if policy is not None and not is_async:
            raise ValueError(f"task {called!r} has a timeout, so it must be async: a running thread can't be stopped")
        declared = TaskDeclaration(
            function=function,
            name=called,
            is_async=is_async,
            decode=decoder_of(_returned_type(function)),
            retry=retry_policies(retry_policy) or (),
            cache=cache_policy,
            timeout=policy,
        )
        return TaskFunction(function, declared)

    return decorate if func is None else decorate(func)


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _is_async(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _returned_type(function: Any) -> Any:
    try:
        return get_type_hints(function).get("return", Any)
    except Exception:  # names that can't be resolved say nothing
        return Any


__all__ = ["TaskFunction", "task"]
