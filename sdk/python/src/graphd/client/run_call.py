"""Makes the calls of one run and turns what comes back into items."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphd._gen.v1 import event_pb2, run_pb2, thread_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.awaited_run import astart_and_wait, build_watch, is_awaited, start_and_wait
from graphd.client.connection import GraphConnection
from graphd.client.failures import error_of_run
from graphd.client.items import Item
from graphd.client.omitted_values import restore_values
from graphd.client.refused_request import RefusedRequest, build_join
from graphd.client.resumable_stream import aread_events, read_events
from graphd.client.run_stop import RunStop
from graphd.client.snapshots import SnapshotReader, values_of
from graphd.client.state_reads import read_permitted, read_state
from graphd.client.states import ensure_thread
from graphd.client.temporary_threads import delete_now, find_deletions
from graphd.client.traced_items import atrace_items, inner_ends, trace_items
from graphd.client.translator import Translator, build_final_item
from graphd.client.unassigned_tasks import UnassignedTasks
from graphd.client.updates import AS_NEW_INPUT
from graphd.declare.program import Program
from graphd.errors import GraphdError, GraphDrained
from graphd.names import public_levels
from graphd.runtime.local_runs import LocalRun, register_call
from graphd.runtime.task import current_task
from graphd.runtime.traced_graph import TracedGraph
from graphd.security import Target
from graphd.threads import run_blocking
from graphd.transport.server import call_unary, retry_read, retry_write

Request = Any  # gs.StreamRequest | gs.ResumeRequest
_NOTHING = contextlib.nullcontext()
_LEFT = "the reader has left the stream"


@dataclass
class RunCall:
    """One call, ready to be made."""

    connection: GraphConnection
    program: Program
    request: Request
    translator: Translator | None
    """None where only the end of the run shows."""
    output_keys: str | Sequence[str] | None
    local: LocalRun
    thread: str
    temporary: bool
    gives_settings: bool
    stops_when_left: bool
    """A reader that leaves the stream stops the run."""
    is_lasting: bool
    """The run goes on without its caller, who is interrupted."""
    traced: TracedGraph | None = None
    """Tells callback handlers of the run; None when there are none."""
    _rest: gs.WatchRequest | None = field(default=None, init=False)
    """Tells the rest of a run that was started."""

    def __post_init__(self) -> None:
        self._refused: RefusedRequest | None = None
        self._stop = RunStop(self.connection.server, self.thread, self.request, self.local)
        self._deletes = self.temporary

    @property
    def _key(self) -> tuple[Target, str]:
        return self.connection.server.target, self.thread

    # Both ways.

    def prepare(self) -> None:
        """Makes the calls that a run needs before it can begin."""
        spec = self.request.run if isinstance(self.request, gs.StreamRequest) else None
        control = self.local.control
        drained = control is not None and control.drain_requested
        if drained and spec is not None and spec.HasField("input"):
            self._write_input(spec)
        if self._reads_progress(spec):
            self._read_progress()
        if drained:
            assert control is not None
            raise GraphDrained(control.drain_reason or "")

    def _needs_preparation(self) -> bool:
        """Whether prepare would do anything."""
        spec = self.request.run if isinstance(self.request, gs.StreamRequest) else None
        control = self.local.control
        drained = control is not None and control.drain_requested
        return drained or self._reads_progress(spec)

    def _reads_progress(self, spec: run_pb2.RunSpec | None) -> bool:
        goes_on = spec is None or spec.WhichOneof("start") is None
        shows_progress = self.translator is not None and self.translator.wants_progress
        return goes_on and shows_progress and not self.temporary

    def _read_progress(self) -> None:
        """Reads how far the tasks have come with which the call goes on."""
        assert self.translator is not None
        request = ts.GetStateRequest(thread_id=self.thread, subgraphs=True)
        threads = self.connection.server.stubs.threads
        try:
            state = read_permitted(self.thread, lambda: read_state(threads, self.program, request, opened=False))
        except GraphdError as error:
            if error.reason != "THREAD_NOT_FOUND":
                raise
            return
        if state is not None:
            reader = SnapshotReader(self.local.config, self.program.readable_programs)
            self.translator.set_progress(reader.read_snapshot(state).tasks)

    def _write_input(self, spec: run_pb2.RunSpec) -> None:
        # An input for later: written to the state as the input that it is, so
        # that a run without input goes on with it.
        ensure_thread(self.connection, self.program, self.thread)
        update = ts.UpdateStateRequest(
            thread_id=self.thread,
            values=spec.input,
            as_node=AS_NEW_INPUT,
            supersede_interrupts=True,
            request_id=uuid.uuid4().hex,
        )
        update.at.checkpoint_id = spec.input_at.checkpoint_id
        retry_write(self.connection.server.stubs.threads.UpdateState, update)
        spec.ClearField("input")
        spec.ClearField("input_at")

    def _open_questions(self, translator: Translator, run: run_pb2.Run) -> list[Any]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED or translator.has_raised(run.open_interrupt_ids):
            return []
        return self._read_end(run)[1]

    def _read_end(self, run: run_pb2.Run) -> tuple[Any, list[Any]]:
        """The values of the state at the end of a run, and the questions that are open then."""
        state = read_permitted(self.thread, self._read_state)
        if state is not None:
            waiting = [i for i in state.interrupts if i.interrupt_id in run.open_interrupt_ids]
            return values_of(self.program, state.values), waiting
        get = self.connection.server.stubs.interrupts.GetInterrupt
        wanted = [ins.GetInterruptRequest(thread_id=self.thread, interrupt_id=i) for i in run.open_interrupt_ids]
        return None, [retry_read(get, request) for request in wanted]

    def _read_state(self) -> thread_pb2.StateSnapshot:
        request = ts.GetStateRequest(thread_id=self.thread)
        return read_state(self.connection.server.stubs.threads, self.program, request)

    def _restore_values(self, event: event_pb2.Event) -> None:
        program = self.program.find_graph(public_levels(event.namespace))
        restore_values(self.connection.server.stubs, program, event)

    def _final_items(self, run: run_pb2.Run) -> list[Item]:
        """What is shown when the run has stopped."""
        if (translator := self.translator) is not None:
            items = list(translator.open_question_items(self._open_questions(translator, run)))
            items.extend(translator.held_items())
            if run.state == run_pb2.RUN_STATE_INTERRUPTED:
                items.extend(translator.breakpoint_items(run.open_interrupt_ids))
            return items
        if run.state == run_pb2.RUN_STATE_SUCCEEDED and run.HasField("output"):
            return [build_final_item(self.output_keys, values_of(self.program, run.output), ())]
        if run.state not in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_INTERRUPTED):
            return []
        return [build_final_item(self.output_keys, *self._read_end(run))]

    def _translate_event(self, event: event_pb2.Event) -> Iterable[Item]:
        return () if self.translator is None else self.translator.translate_event(event)

    def _keep_output(self, run: run_pb2.Run) -> None:
        """Keeps the output of a run that has not failed for callback handlers."""
        if self.traced is None or run.state not in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_INTERRUPTED):
            return
        if run.state == run_pb2.RUN_STATE_SUCCEEDED and run.HasField("output"):
            self.traced.keep_output(values_of(self.program, run.output))
        else:
            self.traced.keep_output(self._read_end(run)[0])

    def _raise_failure(self, run: run_pb2.Run) -> None:
        error = error_of_run(run, self.local)
        if error is not None:
            raise error

    def _cancel_on_drain(self) -> contextlib.AbstractContextManager[object]:
        """A block in which a drain that the caller asks for cancels the run."""
        if self.local.control is None:
            return _NOTHING
        block = contextlib.ExitStack()
        block.callback(self.local.control.on_drain(self._cancel_run))
        return block

    def _cancel_run(self, reason: str) -> None:
        if self._stop.has_ended or self._stop.is_joined or not (self._stop.run_id or self._is_called_by_node()):
            return  # the first event of the run finds that a drain was asked for
        request = gs.CancelRunRequest(
            thread_id=self.thread, run_id=self._stop.run_id, action=gs.CancelRunRequest.ACTION_DRAIN, reason=reason
        )
        with contextlib.suppress(GraphdError):
            call_unary(self.connection.server.stubs.graphs.CancelRun, request)

    def _is_called_by_node(self) -> bool:
        """A node of the run calls this: the run is the active one of its thread, whether it was read or not."""
        task = current_task()
        return task is not None and (task.host.target, task.host.thread) == self._key

    def _delete_thread(self) -> None:
        delete_now(self.connection.server, self.thread)

    async def _adelete_thread(self) -> None:
        """Waits for the end of the deletion, which goes on when the caller is cancelled."""
        await find_deletions(self.connection.server).delete_thread(self.thread)

    # The pace of the reader.

    def _mark_waiting(self) -> None:
        if self.local.gate is not None:
            self.local.gate.mark_waiting()

    def _mark_reading(self, event: event_pb2.Event) -> str | None:
        """Takes notice of an event. Returns why the run is to be drained, if that was asked for before it was known."""
        was_known = bool(self._stop.run_id)
        self._stop.run_id = event.run_id or self._stop.run_id
        self.local.run_id = self._stop.run_id or self.local.run_id
        self._stop.has_ended = event.HasField("end")
        if self.local.gate is not None:
            self.local.gate.mark_reading()
        control = self.local.control
        return None if was_known or control is None else control.drain_reason

    def _release_due(self, event: event_pb2.Event) -> None:
        """The reader has taken what an event showed, and asks for more."""
        gate = self.local.gate
        if gate is None:
            return
        if event.HasField("checkpoint") and not event.namespace:
            gate.release_due(due.task_id for due in event.checkpoint.next)
        elif self._goes_on and event.HasField(self._first_sign):
            gate.release_first()
        gate.mark_waiting()

    @property
    def _first_sign(self) -> str:
        """The event with which a run that goes on shows that it does."""
        shows_values = self.translator is not None and self.translator.wants_values
        return "values" if shows_values else "run_state"

    @property
    def _goes_on(self) -> bool:
        """The run begins with tasks that were due before: no checkpoint announces them."""
        return isinstance(self.request, gs.ResumeRequest) or not self.request.run.HasField("input")

    def _open_gate(self) -> contextlib.AbstractContextManager[object]:
        """A block after which tasks wait for no reader."""
        if self.local.gate is None:
            return _NOTHING
        block = contextlib.ExitStack()
        block.callback(self.local.gate.open)
        return block

    def _is_stopped_when_left(self) -> bool:
        """Whether the reader leaves a run that is under way; another one may have begun after it."""
        return self.stops_when_left and not self.temporary and self._stop.is_needed

    # Plain.

    def stream_items(self) -> Iterator[Item]:
        """Runs, and yields what happens."""
        try:
            yield from trace_items(self.traced, self._stream_run())
        finally:
            if self._deletes:
                self._delete_thread()

    def _stream_run(self) -> Iterator[Item]:
        self.prepare()
        with register_call(*self._key, self.local), self._cancel_on_drain(), self._open_gate():
            try:
                while True:
                    try:
                        run = self._await_stop()
                        yield from self._stream_attempt() if run is None else self._end_items(run)
                        return
                    except GraphdError as error:
                        if (problem := self._recover_from(error)) is not None:
                            raise problem from problem.__cause__
            except GeneratorExit:
                if self._is_stopped_when_left():
                    self._stop.stop_run(_LEFT)
                    self._stop.mark_left()
                raise
            except KeyboardInterrupt:
                if self._stop.is_needed and (self.temporary or not self.is_lasting):
                    self._stop.stop_run(_LEFT)
                raise

    def _stream_attempt(self) -> Iterator[Item]:
        with contextlib.closing(UnassignedTasks(self.connection)) as unassigned:
            self._mark_waiting()
            for event in read_events(self.connection.server, self._rest or self.request, served=self._rest is not None):
                if (reason := self._mark_reading(event)) is not None:
                    self._cancel_run(reason)
                unassigned.observe_event(event)
                if event.value_omitted:
                    self._restore_values(event)
                if self.traced is not None:
                    self.traced.run_steps(self.traced.end_inner(inner_ends(event)))
                yield from self._translate_event(event)
                self._release_due(event)
                if event.HasField("end"):
                    yield from self._end_items(event.end.run)

    def _awaits_stop(self) -> bool:
        """Whether one call starts the run and brings its stop."""
        only_end = self.translator is None and self.local.control is None  # a drain needs a run that has begun
        return is_awaited(self.request, only_end=only_end)

    def _await_stop(self) -> run_pb2.Run | None:
        """The run as it stopped, None where its events are to be read."""
        self._stop.is_sent = True
        if not self._awaits_stop():
            return None
        began = time.monotonic()
        return self._take_run(start_and_wait(self.connection.server, self.request), time.monotonic() - began)

    def _take_run(self, run: run_pb2.Run, waited: float) -> run_pb2.Run | None:
        """The run that a call has brought after so many seconds, None where its events are to be read."""
        self._stop.run_id = run.run_id
        self._rest = build_watch(self.request, run, waited)
        self._stop.has_ended = self._rest is None
        return run if self._rest is None else None

    def _recover_from(self, error: GraphdError) -> GraphdError | None:
        """What to raise, or None when the request is to be made again."""
        if self._rest is not None:
            return error
        self._rest = build_join(self.request, error)
        if self._rest is not None:
            self._stop.is_joined = self.local.is_joined = True
            if self.local.gate is not None:
                self.local.gate.open()  # what is due already is not announced to this reader
            return None
        self._refused = self._refused or RefusedRequest(self.connection, self.request, self.gives_settings)
        return self._refused.recover_from(error)

    def _end_items(self, run: run_pb2.Run) -> Iterator[Item]:
        """What is shown at the end of a run; raises what it has failed with."""
        yield from self._final_items(run)
        self._keep_output(run)
        self._raise_failure(run)

    # Async.

    async def astream_items(self) -> AsyncGenerator[Item, None]:
        """Like stream_items, for async programs."""
        try:
            async with contextlib.aclosing(atrace_items(self.traced, self._astream_run())) as items:
                async for item in items:
                    yield item
        finally:
            if self._deletes:
                await self._adelete_thread()

    async def _astream_run(self) -> AsyncGenerator[Item, None]:
        self.local.loop = asyncio.get_running_loop()
        if self._needs_preparation():
            await run_blocking(self.prepare)
        with register_call(*self._key, self.local), self._cancel_on_drain(), self._open_gate():
            try:
                while True:
                    try:
                        run = await self._aawait_stop()
                        if run is not None:
                            for item in await self._afinal_items(run):
                                yield item
                            await self._aend_run(run)
                            return
                        async with contextlib.aclosing(self._astream_attempt()) as items:
                            async for item in items:
                                yield item
                        return
                    except GraphdError as error:
                        if (problem := self._recover_from(error)) is not None:
                            raise problem from problem.__cause__
            except asyncio.CancelledError:
                await self._leave_run()
                raise
            except GeneratorExit:
                if self._is_stopped_when_left():
                    await asyncio.shield(self._stop.astop_run(_LEFT))
                    self._stop.mark_left()
                raise

    async def _astream_attempt(self) -> AsyncGenerator[Item, None]:
        async with contextlib.aclosing(
            aread_events(self.connection.server, self._rest or self.request, served=self._rest is not None)
        ) as events:
            with contextlib.closing(UnassignedTasks(self.connection)) as unassigned:
                self._mark_waiting()
                async for event in events:
                    if (reason := self._mark_reading(event)) is not None:
                        await run_blocking(self._cancel_run, reason)
                    unassigned.observe_event(event)
                    if event.value_omitted:
                        await run_blocking(self._restore_values, event)
                    if self.traced is not None:
                        await self.traced.end_inner(inner_ends(event))
                    for item in self._translate_event(event):
                        yield item
                    self._release_due(event)
                    if event.HasField("end"):
                        for item in await self._afinal_items(event.end.run):
                            yield item
                        await self._aend_run(event.end.run)

    async def _aawait_stop(self) -> run_pb2.Run | None:
        self._stop.is_sent = True
        if not self._awaits_stop():
            return None
        began = time.monotonic()
        run = await astart_and_wait(self.connection.server, self.request)
        return self._take_run(run, time.monotonic() - began)

    async def _aend_run(self, run: run_pb2.Run) -> None:
        """The end of a run has been shown; raises what it has failed with."""
        if self.traced is not None:
            await run_blocking(self._keep_output, run)
        self._raise_failure(run)

    async def _afinal_items(self, run: run_pb2.Run) -> list[Item]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED and self.local.control is None:
            return self._final_items(run)
        return await run_blocking(self._final_items, run)

    async def _leave_run(self) -> None:
        # The caller was cancelled; its nodes run on its loop and stop with it.
        self.local.cancelled = True
        if self._stop.is_needed:
            await asyncio.shield(asyncio.ensure_future(self._aleave_run()))

    async def _aleave_run(self) -> None:
        deletes, self._deletes = self._deletes, False  # another cancel must not delete the thread before there is one
        await self._stop.astop_run("the caller was cancelled")
        if deletes:
            await self._adelete_thread()
