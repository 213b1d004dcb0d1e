"""A compiled graph among LangChain's Runnables.

``import graphd`` does not import LangChain, and a graph that was compiled before the
program imports it is a Runnable afterwards: ``isinstance(graph, Runnable)`` asks the graph
for its ``__class__``, and the graph takes a class that inherits from Runnable then. A graph
takes it too when a method is called that only Runnables have.

The methods here that need nothing of LangChain do the same with and without it. In the
class that inherits from Runnable the others are Runnable's own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import types
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from graphd.compiled.runnable_graph import RunnableGraph
from graphd.packages import imported_attribute, require_module

_CLASS: Any = vars(object)["__class__"]
Configs = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


_DELEGATED = ["__or__", "__ror__"]


def _delegate(name: str) -> Callable[..., Any]:
    """A method that only Runnables have."""
    _DELEGATED.append(name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        runnable = require_module("langchain_core.runnables.base", f"{name}()").Runnable
        if not hasattr(runnable, name):
            raise NotImplementedError(f"{name}() needs a newer langchain-core: the Runnable of this one has none")
        return getattr(runnable, name)(_as_runnable(self, name), *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"ComposableGraph.{name}"
    method.__doc__ = f"``Runnable.{name}`` of LangChain; MissingPackageError without langchain-core."
    return method


class ComposableGraph(RunnableGraph):
    """A graph that runs on many inputs, and that is composed with others."""

    @property
    def __class__(self) -> type[Any]:
        if imported_attribute("langchain_core.runnables.base", "Runnable") is not None:
            _become_runnable(self)
        return type(self)

    @__class__.setter
    def __class__(self, kind: type[Any]) -> None:
        _CLASS.__set__(self, kind)

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """The name of the graph, or the one given, with a suffix."""
        found = name or self.name
        if not suffix:
            return found
        return found + suffix.title() if found[0].isupper() else f"{found}_{suffix.lower()}"

    # On several inputs.

    def batch(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Invokes the graph on each input, side by side; returns the results in the order of the inputs.

        ``config`` is one for all inputs, or a list with one for each. Its
        ``max_concurrency`` says how many run at a time. The first exception is
        raised, or with ``return_exceptions`` each is in the place of its result.
        """
        found = self.batch_as_completed(inputs, config, return_exceptions=return_exceptions, **kwargs)
        return [result for _, result in sorted(found, key=lambda pair: pair[0])]

    def batch_as_completed(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> Iterator[tuple[int, Any]]:
        """Like batch, but yields the place of the input and the result as each run ends."""
        configs = _list_configs(config, len(inputs))

        def invoke(at: int) -> tuple[int, Any]:
            try:
                return at, self.invoke(inputs[at], configs[at], **kwargs)
            except Exception as error:
                if return_exceptions:
                    return at, error
                raise

        if not inputs:
            return
        with concurrent.futures.ThreadPoolExecutor(configs[0].get("max_concurrency") or len(inputs)) as pool:
            calls = [pool.submit(contextvars.copy_context().run, invoke, at) for at in range(len(inputs))]
            try:
                for call in concurrent.futures.as_completed(calls):
                    yield call.result()
            finally:
                for call in calls:
                    call.cancel()

    async def abatch(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """Like batch, for async programs."""
        found = self.abatch_as_completed(inputs, config, return_exceptions=return_exceptions, **kwargs)
        return [result for _, result in sorted([pair async for pair in found], key=lambda pair: pair[0])]

    async def abatch_as_completed(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> AsyncIterator[tuple[int, Any]]:
        """Like batch_as_completed, for async programs."""
        configs = _list_configs(config, len(inputs))
        slots = asyncio.Semaphore((configs[0].get("max_concurrency") if configs else None) or len(inputs) or 1)

        async def invoke(at: int) -> tuple[int, Any]:
            async with slots:
                try:
                    return at, await self.ainvoke(inputs[at], configs[at], **kwargs)
                except Exception as error:
                    if return_exceptions:
                        return at, error
                    raise

        calls = [asyncio.ensure_future(invoke(at)) for at in range(len(inputs))]
        try:
            for call in asyncio.as_completed(calls):
                yield await call
        finally:
            for left in calls:
                left.cancel()

    # On inputs that come in pieces.

    def transform(self, input: Iterator[Any], config: Mapping[str, Any] | None = None, **kwargs: Any) -> Iterator[Any]:
        """Adds the pieces of the input up, then streams; of pieces that can't be added the last counts."""
        pieces = list(input)
        if pieces:
            yield from self.stream(functools.reduce(_add_piece, pieces), config, **kwargs)

    async def atransform(
        self, input: AsyncIterator[Any], config: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Like transform, for async programs."""
        pieces = [piece async for piece in input]
        if pieces:
            async for item in self.astream(functools.reduce(_add_piece, pieces), config, **kwargs):
                yield item

    # With LangChain only.

    as_tool = _delegate("as_tool")
    assign = _delegate("assign")
    astream_events = _delegate("astream_events")
    astream_log = _delegate("astream_log")
    bind = _delegate("bind")
    get_prompts = _delegate("get_prompts")
    map = _delegate("map")
    pick = _delegate("pick")
    pipe = _delegate("pipe")
    stream_events = _delegate("stream_events")
    with_alisteners = _delegate("with_alisteners")
    with_fallbacks = _delegate("with_fallbacks")
    with_listeners = _delegate("with_listeners")
    with_retry = _delegate("with_retry")
    with_types = _delegate("with_types")

    def __or__(self, other: Any) -> Any:
        return _as_runnable(self, "graph | …") | other

    def __ror__(self, other: Any) -> Any:
        return other | _as_runnable(self, "… | graph")


def _as_runnable(graph: ComposableGraph, needed_by: str) -> Any:
    """The graph, as a Runnable from now on."""
    require_module("langchain_core.runnables.base", needed_by)
    _become_runnable(graph)
    return graph


def _become_runnable(graph: Any) -> None:
    runnable = imported_attribute("langchain_core.runnables.base", "Runnable")
    kind: Any = type(graph)
    if not issubclass(kind, runnable):
        _CLASS.__set__(graph, _runnable_class(kind, runnable))


@functools.cache
def _runnable_class(kind: Any, runnable: Any) -> type[Any]:
    """A class of graphs, as one of Runnables."""
    own = {name: vars(runnable)[name] for name in _DELEGATED if name in vars(runnable)}
    own |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return types.new_class(kind.__name__, (kind, runnable), exec_body=lambda names: names.update(own))


def _list_configs(config: Configs, length: int) -> list[Mapping[str, Any]]:
    """One config for each input."""
    if isinstance(config, Sequence):
        if len(config) != length:
            raise ValueError(f"config: a list must have one config for each of the {length} inputs; got {len(config)}")
        return list(config)
    shared = config or {}
    if length > 1 and shared.get("run_id") is not None:
        warnings.warn("config['run_id'] names one run: that of the first input", RuntimeWarning, stacklevel=3)
        return [shared, *[{k: v for k, v in shared.items() if k != "run_id"}] * (length - 1)]
    return [shared] * length


def _add_piece(sum: Any, piece: Any) -> Any:
    try:
        return sum + piece
    except TypeError:
        return piece
