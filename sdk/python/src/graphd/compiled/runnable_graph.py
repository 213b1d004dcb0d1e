"""Running a compiled graph: invoke, stream and their async forms."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from graphd.client import nested, run_request
from graphd.client.connection import GraphConnection
from graphd.client.items import FINAL, Item, filter_of
from graphd.client.options import CallOptions, check_durability, merge_configs
from graphd.client.run_call import RunCall
from graphd.client.state_reads import read_permitted
from graphd.client.states import values_at
from graphd.client.stream_format import ResultCollector, StreamFormat
from graphd.client.translator import Translator
from graphd.compiled.attached_graph import AttachedGraph
from graphd.compiled.traced_call import ProgramInThread, trace_call
from graphd.declare.options import node_names
from graphd.names import wire_levels
from graphd.runtime.blocked_loops import block_loop
from graphd.runtime.info import RunControl
from graphd.runtime.local_runs import LocalRun
from graphd.runtime.reader_gate import ReaderGate
from graphd.runtime.task import CurrentTask, current_task
from graphd.runtime.traced_graph import TracedGraph
from graphd.threads import run_in_thread
from graphd.values.command import Command
from graphd.values.literals import All


class RunnableGraph(AttachedGraph):
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
        An answer replaces the context, the breakpoints and the ``recursion_limit`` for the
        rest of the run. Of a client that is no worker, and of a caller without the right to
        replace them, it does so only if it gives one of them.

        Raises what a node raised and no handler took over: its own exception if it
        ran in this process. GraphRecursionError and InvalidUpdateError come of
        the graph, GraphdError of the server; its ``reason`` is stable.

        ``durability="exit"`` makes history show what the call has done as one
        checkpoint. Whatever it says, graphd stores before it shows.
        """
        stream_format = self._stream_format(stream_mode, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _call_options(
            stream_format,
            context=context,
            output_keys=self._check_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        for item in self._run_items(input, config, options):
            yield from stream_format.format_item(item)

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
        stream_format = self._stream_format(stream_mode, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _call_options(
            stream_format,
            context=context,
            output_keys=self._check_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        async with contextlib.aclosing(await self._open_items(input, config, options)) as items:
            async for item in items:
                for part in stream_format.format_item(item):
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
        collector = ResultCollector(stream_mode, version)
        stream_format = self._stream_format(collector.modes, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _call_options(
            stream_format,
            context=context,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        for item in self._run_items(input, config, options):
            collector.add_item(item, stream_format)
        return collector.final_result()

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
        collector = ResultCollector(stream_mode, version)
        stream_format = self._stream_format(collector.modes, print_mode, debug, subgraphs=subgraphs, version=version)
        options = _call_options(
            stream_format,
            context=context,
            output_keys=self._output_keys(output_keys),
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            durability=durability,
            control=control,
            subgraphs=subgraphs,
            older=older,
        )
        async with contextlib.aclosing(await self._open_items(input, config, options)) as items:
            async for item in items:
                collector.add_item(item, stream_format)
        return collector.final_result()

    # What they have in common.

    def _run_items(self, given: Any, config: Mapping[str, Any] | None, options: CallOptions) -> Iterator[Item]:
        merged = merge_configs(self.config, config)
        with block_loop():
            if (task := self._enclosing_task(config)) is not None:
                traced = self._trace_nested(task, given, merged, options, None)
                yield from nested.run_nested(self, task, given, merged, options, traced)
            else:
                yield from self._plan_run(given, merged, options, None).stream_items()

    async def _open_items(
        self, given: Any, config: Mapping[str, Any] | None, options: CallOptions
    ) -> AsyncGenerator[Item, None]:
        """Like _run_items; the run begins with the first item that is asked for."""
        merged, loop = merge_configs(self.config, config), asyncio.get_running_loop()
        if (task := self._enclosing_task(config)) is not None:
            traced = await run_in_thread(
                self._trace_nested, task, given, merged, options, loop
            )  # handlers are the program's
            return nested.arun_nested(self, task, given, merged, options, traced)
        if self.is_attached:
            running = self._plan_run(given, merged, options, loop)
        else:  # waits for a server, or for another call that does
            running = await run_in_thread(self._plan_run, given, merged, options, loop)
        running.local.variables = contextvars.copy_context()
        return running.astream_items()

    def _enclosing_task(self, config: Mapping[str, Any] | None) -> CurrentTask | None:
        """The task that the call is a part of, None for a run of its own."""
        task = current_task()
        return task if task is not None and nested.is_nested(task, config) else None

    def _stream_format(
        self,
        modes: str | Sequence[str] | None,
        printed: str | Sequence[str],
        debug: bool | None,
        *,
        subgraphs: bool,
        version: str,
    ) -> StreamFormat:
        if debug or (debug is None and self.compile_options.debug):
            printed = ("updates", "values")
        return StreamFormat(modes, printed=printed, subgraphs=subgraphs, version=version)

    def _output_keys(self, given: str | Sequence[str] | None) -> str | Sequence[str] | None:
        return self.program.shown_keys if given is None else self._check_keys(given)

    def _check_keys(self, given: str | Sequence[str] | None) -> str | Sequence[str] | None:
        """The keys to show; ValueError for one that the state has not."""
        known = self.program.channels
        for key in [given] if isinstance(given, str) else given or ():
            if key not in known and not self.is_function:
                raise ValueError(f"output_keys: Key {key} not in channels; there are {', '.join(known)}")
        return given

    def _trace_nested(
        self,
        task: CurrentTask,
        given: Any,
        config: Mapping[str, Any],
        options: CallOptions,
        loop: asyncio.AbstractEventLoop | None,
    ) -> TracedGraph | None:
        program = ProgramInThread(self.program, self.attach(*task.host.target), task.host.thread)
        traced = trace_call(program, given, config, loop)
        if traced is not None:
            traced.output_keys = self._output_keys(options.output_keys)
        return traced

    def _plan_run(
        self,
        given: Any,
        merged: Mapping[str, Any],
        options: CallOptions,
        loop: asyncio.AbstractEventLoop | None,
    ) -> RunCall:
        modes = options.stream_format.modes
        thread = self._thread_of(merged)
        if thread is None and isinstance(given, Command) and given.resume is not None:
            raise RuntimeError("Cannot use Command(resume=...) without checkpointer")
        connection = self.connect()
        request_id = uuid.uuid4().hex
        wire = thread or f"tmp.{request_id}"
        some_keys = "values" in modes and self._shows_some_keys(options)
        in_pace = self._reads_in_pace(options)
        call = run_request.CallSpec(
            program=self.program,
            version=connection.version(self.program.name),
            request_id=request_id,
            thread=wire,
            config=merged,
            options=options,
            event_filter=filter_of(modes, subgraphs=options.subgraphs, some_keys=some_keys, checkpoints=in_pace),
            withheld=self._withheld_rights(connection),
        )
        request = run_request.build_request(call, given)

        tokens = "messages" in modes
        local = LocalRun(
            dict(merged),
            options.context,
            options.control,
            tokens=tokens,
            store=self.program.store,
            program=self.program,
            run_id=run_request.run_id_of(request),
        )
        if in_pace:
            local.gate = ReaderGate()
        traced = trace_call(ProgramInThread(self.program, connection, wire), given, merged, loop)
        if traced is not None:
            traced.output_keys = self._output_keys(options.output_keys)
            local.traced[()] = traced
        return RunCall(
            connection,
            self.program,
            request,
            None if list(modes) == [FINAL] else self._build_translator(connection, call, given, local),
            options.output_keys,
            local,
            wire,
            temporary=thread is None,
            gives_settings=call.gives_settings,
            stops_when_left=local.gate is not None and not self._location.lasting,
            is_lasting=self._location.lasting,
            traced=traced,
        )

    def _build_translator(
        self, connection: GraphConnection, call: run_request.CallSpec, given: Any, local: LocalRun
    ) -> Translator:
        options = call.options

        def read_state(at: Sequence[str]) -> Any:
            levels = wire_levels(at)
            return read_permitted(call.thread, lambda: values_at(connection, self.program, call.thread, levels))

        translator = Translator(
            options.stream_format.modes,
            self.program,
            call.config,
            options.output_keys,
            read_state,
            subgraphs=options.subgraphs,
            stored=self._thread_of(call.config) is not None,
            continues=given is None or isinstance(given, Command),
            local=local,
            folds=options.durability == "exit",
        )
        if isinstance(given, Mapping):
            translator.set_input(given)
        return translator

    def _shows_some_keys(self, options: CallOptions) -> bool:
        """Whether states show when some of their keys were written, and not with each superstep."""
        if options.output_keys is not None:
            return True
        inside = self.program.readable_programs.values()
        return any(one.function or (options.subgraphs and one.shown_keys is not None) for one in inside)

    def _reads_in_pace(self, options: CallOptions) -> bool:
        """Whether nodes of this process begin when the reader has taken what came before them."""
        works = bool(self.compile_options.worker)
        return works and FINAL not in options.stream_format.modes and options.durability != "exit"

    def _withheld_rights(self, connection: GraphConnection) -> frozenset[str]:
        """The rights that calls do without: of a client that is no worker, all that they can."""
        if not self.compile_options.worker:
            return run_request.OPTIONAL_RIGHTS
        return frozenset(connection.server.missing_rights)


def _call_options(
    stream_format: StreamFormat,
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
        stream_format=stream_format,
        context=context,
        output_keys=output_keys,
        interrupt_before=node_names(interrupt_before),
        interrupt_after=node_names(interrupt_after),
        durability=check_durability(durability),
        control=control,
        subgraphs=subgraphs,
        gives_settings=any(given is not None for given in (context, interrupt_before, interrupt_after)),
    )
