"""Callback handlers of LangChain: those of a config, of the code around a call, and of the environment."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import os
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from graphd.packages import imported_attribute, is_installed, require_module

T = TypeVar("T")

_MANAGERS = "langchain_core.callbacks.manager"
_TRACING = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING")
# What the metadata of a run has from the configurable part of a config.
_PROPAGATED = ("thread_id", "checkpoint_id", "checkpoint_ns", "task_id", "run_id", "assistant_id", "graph_id")


def check_callbacks(config: Mapping[str, Any]) -> None:
    """Raises TypeError for callbacks that are none, and MissingPackageError without langchain-core."""
    given = config.get("callbacks")
    if given is None or given == []:
        return
    base = require_module("langchain_core.callbacks.base", "config['callbacks']")
    if isinstance(given, base.BaseCallbackManager):
        return
    if isinstance(given, list) and all(isinstance(one, base.BaseCallbackHandler) for one in given):
        return
    raise TypeError(
        f"config['callbacks'] must be a list of LangChain's callback handlers, or its manager; got {given!r}"
    )


def merge_callbacks(base: Any, over: Any) -> Any:
    """The handlers of two configs."""
    if not base or not over:
        return over or base
    if isinstance(base, list) and isinstance(over, list):
        return [*base, *(one for one in over if one not in base)]
    if not isinstance(base, list) and not isinstance(over, list):
        return base if base is over else base.merge(over)
    manager, added = (over, base) if isinstance(base, list) else (base, over)
    merged = manager.copy()
    for handler in added:
        merged.add_handler(handler, inherit=True)
    return merged


def configure_manager(config: Mapping[str, Any], *, is_async: bool, listened_inside: bool) -> Any | None:
    """LangChain's callback manager for a call; None without handlers.

    Its handlers are those of the config and of the Runnable or node that makes the call,
    and those that LangChain adds by itself, such as its tracer. ``listened_inside`` says
    that a graph inside has handlers of its own.
    """
    is_used = imported_attribute(_MANAGERS, "CallbackManager") is not None or listened_inside
    if not (config.get("callbacks") or is_used or _is_traced_by_environment()):
        return None
    library = require_module(_MANAGERS, "config['callbacks']")
    around = _config_around()
    tags = list(around.get("tags") or [])
    tags += [tag for tag in config.get("tags") or [] if tag not in tags]
    metadata = dict(around.get("metadata") or {}) | dict(config.get("metadata") or {})
    configurable = dict(around.get("configurable") or {}) | dict(config.get("configurable") or {})
    propagated = {key: configurable[key] for key in _PROPAGATED if configurable.get(key)}
    kind = library.AsyncCallbackManager if is_async else library.CallbackManager
    manager = kind.configure(
        inheritable_callbacks=merge_callbacks(around.get("callbacks"), config.get("callbacks")),
        inheritable_tags=tags,
        inheritable_metadata=propagated | metadata,
    )
    return manager if manager.handlers or listened_inside else None


def bind_config(manager: Any, config: Mapping[str, Any]) -> None:
    """Adds the handlers, tags and metadata of a config."""
    given = config.get("callbacks") or []
    for handler in given if isinstance(given, list) else given.handlers:
        manager.add_handler(handler, inherit=True)
    manager.add_tags(list(config.get("tags") or []))
    manager.add_metadata(dict(config.get("metadata") or {}))


def _config_around() -> Mapping[str, Any]:
    """The config of the Runnable or node that the calling code is part of."""
    variable = imported_attribute("langchain_core.runnables.config", "var_child_runnable_config")
    return (variable.get() if variable is not None else None) or {}


def _is_traced_by_environment() -> bool:
    return any(os.environ.get(name) == "true" for name in _TRACING) and is_installed("langchain_core")


async def settle(outcome: Any) -> Any:
    """What a method of a manager returns: an async manager returns awaitables."""
    return await outcome if inspect.isawaitable(outcome) else outcome


def run_plain(steps: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that waits for nothing, as those that use a plain manager."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    steps.close()
    raise RuntimeError("a plain callback manager had to be awaited")


def run_on_loop(steps: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T | None:
    """Runs a coroutine on a loop of another thread; None when that loop has ended."""
    try:
        call = asyncio.run_coroutine_threadsafe(steps, loop)
    except RuntimeError:
        steps.close()
        return None
    while True:
        done, _ = concurrent.futures.wait([call], timeout=1)
        if done:
            return None if call.cancelled() else call.result()
        if loop.is_closed():
            return None
