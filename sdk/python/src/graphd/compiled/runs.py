"""Running a compiled graph: invoke, stream and their async forms."""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from graphd.client import nested, run_request
from graphd.client.items import Item, filter_of
from graphd.client.options import CallOptions, durability_of, merge_configs
from graphd.client.running import Running
from graphd.client.shape import Collector, Shape
from graphd.client.states import values_at
from graphd.client.translate import Translator
from graphd.compiled.attached import Attached
from graphd.declare.options import node_names
from graphd.names import wire_levels
from graphd.runtime.here import LocalRun
from graphd.runtime.info import RunControl
from graphd.runtime.task import CurrentTask, current_task
from graphd.values.command import Command
from graphd.values.words import All


class Runs(Attached):
    """A graph that can be run."""

    def stream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Iterator[Any]:
        """Runs the graph and yields what happens, as it happens.

        ``stream_mode`` is one of values, updates, messages, custom, tasks,
        checkpoints and debug, or several of them: then each item says which it
        is. ``subgraphs`` shows what happens below too. ``input`` is an update of
        the state, None to go on, or a Command, such as ``Command(resume=answer)``.

        Raises what a node raised and nobody handled: its own exception if it
        ran in this process. GraphRecursionError and InvalidUpdateError come of
        the graph, GraphdError of the server; its ``reason`` is stable.

        ``durability="exit"`` makes history show what the call has done as one
        checkpoint. Whatever it says, graphd stores before it shows.
        """
        shape = self._shape(stream_mode, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _options(
            shape,
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        for item in self._items(input, config, options):
            yield from shape.parts(item)

    async def astream(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] | None = None,
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> AsyncIterator[Any]:
        """Like stream, for async programs; async nodes run on this loop."""
        shape = self._shape(stream_mode, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _options(
            shape,
            context=context,
            output_keys=output_keys,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        async for item in self._aitems(input, config, options):
            for part in shape.parts(item):
                yield part

    def invoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Any:
        """Runs the graph to its end or to its questions; returns the state.

        Open questions are under ``__interrupt__``; ``Command(resume=answer)`` as
        the input of the next call answers them. With another ``stream_mode`` it
        returns a list of what stream yields; both raise the same.
        """
        collector = Collector(stream_mode, version)
        shape = self._shape(collector.modes, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _options(
            shape,
            context=context,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        for item in self._items(input, config, options):
            collector.add(item, shape)
        return collector.result()

    async def ainvoke(
        self,
        input: Any,
        config: Mapping[str, Any] | None = None,
        *,
        context: Any = None,
        stream_mode: str | Sequence[str] = "values",
        print_mode: str | Sequence[str] = (),
        output_keys: str | Sequence[str] | None = None,
        interrupt_before: All | Sequence[str] | None = None,
        interrupt_after: All | Sequence[str] | None = None,
        durability: str | None = None,
        control: RunControl | None = None,
        subgraphs: bool = False,
        debug: bool | None = None,
        version: str = "v1",
        **older: Any,
    ) -> Any:
        """Like invoke, for async programs."""
        collector = Collector(stream_mode, version)
        shape = self._shape(collector.modes, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _options(
            shape,
            context=context,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        async for item in self._aitems(input, config, options):
            collector.add(item, shape)
        return collector.result()

    # What they have in common.

    def _items(self, given: Any, config: Mapping[str, Any] | None, options: CallOptions) -> Iterator[Item]:
        if (task := self._nests(config)) is not None:
            yield from nested.items(self, task, given, merge_configs(self.config, config), options)
        else:
            yield from self._plan(given, config, options).items()

    async def _aitems(self, given: Any, config: Mapping[str, Any] | None, options: CallOptions) -> AsyncIterator[Item]:
        if (task := self._nests(config)) is not None:
            async for item in nested.aitems(self, task, given, merge_configs(self.config, config), options):
                yield item
            return
        running = await asyncio.to_thread(self._plan, given, config, options)
        running.local.variables = contextvars.copy_context()
        async for item in running.aitems():
            yield item

    def _nests(self, config: Mapping[str, Any] | None) -> CurrentTask | None:
        """The task that the call is a part of, None for a run of its own."""
        task = current_task()
        return task if task is not None and nested.is_nested(task, config) else None

    def _shape(
        self,
        modes: str | Sequence[str] | None,
        printed: str | Sequence[str],
        debug: bool | None,
        *,
        subgraphs: bool,
        version: str,
    ) -> Shape:
        if debug or (debug is None and self.compile_options.debug):
            printed = ("updates", "values")
        return Shape(modes, printed=printed, subgraphs=subgraphs, version=version)

    def _output_keys(self, given: str | Sequence[str] | None) -> str | Sequence[str] | None:
        output = self.builder.output
        if given is not None or output.is_root or set(output.channels()) >= set(self.program.channels):
            return given
        return list(output.channels())

    def _plan(self, given: Any, config: Mapping[str, Any] | None, options: CallOptions) -> Running:
        modes = options.shape.modes
        merged = merge_configs(self.config, config)
        thread = self._thread(merged)
        if thread is None and isinstance(given, Command) and given.resume is not None:
            raise RuntimeError("Cannot use Command(resume=...) without checkpointer")
        home = self.attach()
        wire = thread or f"tmp.{uuid.uuid4().hex}"
        some_keys = options.output_keys is not None and "values" in modes
        call = run_request.Call(
            program=self.program,
            version=home.version(self.program.name),
            thread=wire,
            config=merged,
            options=options,
            event_filter=filter_of(modes, subgraphs=options.subgraphs, some_keys=some_keys),
        )
        request = run_request.request_of(call, given)

        def read_state(at: Sequence[str]) -> Any:
            return values_at(home, self.program, wire, wire_levels(at))

        translator = Translator(
            modes,
            self.program,
            merged,
            options.output_keys,
            read_state,
            subgraphs=options.subgraphs,
            stored=thread is not None,
        )
        local = LocalRun(merged, options.context, options.control, tokens="messages" in modes)
        return Running(home, self.program, request, translator, local, wire, thread is None)


def _options(
    shape: Shape,
    *,
    context: Any,
    output_keys: str | Sequence[str] | None,
    interrupt_before: All | Sequence[str] | None,
    interrupt_after: All | Sequence[str] | None,
    durability: str | None,
    control: RunControl | None,
    subgraphs: bool,
    older: dict[str, Any],
) -> CallOptions:
    if (during := older.pop("checkpoint_during", None)) is not None:
        durability = durability or ("async" if during else "exit")
    if older:
        raise TypeError(f"unknown arguments: {', '.join(sorted(older))}")
    return CallOptions(
        shape=shape,
        context=context,
        output_keys=output_keys,
        interrupt_before=node_names(interrupt_before),
        interrupt_after=node_names(interrupt_after),
        durability=durability_of(durability),
        control=control,
        subgraphs=subgraphs,
    )
