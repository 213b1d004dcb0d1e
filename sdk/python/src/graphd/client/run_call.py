"""Makes the calls of one run and turns what comes back into items."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from graphd._gen.v1 import event_pb2, run_pb2, thread_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.connection import GraphConnection
from graphd.client.failures import error_of_run
from graphd.client.items import Item
from graphd.client.omitted_values import restore_values
from graphd.client.resumable_stream import ResumableStream
from graphd.client.run_request import DISCARD_QUESTIONS, REPLACE_SETTINGS
from graphd.client.snapshots import SnapshotReader, values_of
from graphd.client.state_reads import read_permitted, read_state
from graphd.client.states import ensure_thread
from graphd.client.translator import Translator
from graphd.client.unassigned_tasks import UnassignedTasks
from graphd.client.updates import AS_INPUT
from graphd.declare.program import Program
from graphd.errors import GraphdError, GraphDrained, NothingToResumeError
from graphd.runtime.local_runs import LocalRun, register_call
from graphd.security import Target
from graphd.transport.errors import EmptyInput, to_graphd_error
from graphd.transport.server import acall_unary, call_unary, retry_read, retry_write

Request = Any  # gs.StreamRequest | gs.ResumeRequest


@dataclass
class RunCall:
    """One call, ready to be made."""

    connection: GraphConnection
    program: Program
    request: Request
    translator: Translator
    local: LocalRun
    thread: str
    temporary: bool
    gives_settings: bool
    _first: GraphdError | None = field(default=None, init=False)
    _insists: bool = field(default=False, init=False)

    @property
    def _key(self) -> tuple[Target, str]:
        return self.connection.server.target, self.thread

    # Both ways.

    def prepare(self) -> None:
        """Makes the calls that a run needs before it can begin."""
        spec = self.request.run if isinstance(self.request, gs.StreamRequest) else None
        control = self.local.control
        drained = control is not None and control.drain_requested
        if spec is not None and spec.HasField("input") and (spec.expected_checkpoint_id or drained):
            self._write_input(spec)
        if self.translator.wants_progress and not self.temporary and (spec is None or spec.WhichOneof("start") is None):
            self._read_progress()
        if drained:
            assert control is not None
            raise GraphDrained(control.drain_reason or "")

    def _read_progress(self) -> None:
        """Reads how far the tasks have come with which the call goes on."""
        request = ts.GetStateRequest(thread_id=self.thread, subgraphs=True)
        threads = self.connection.server.stubs.threads
        try:
            state = read_permitted(self.thread, lambda: read_state(threads, self.program, request, opened=False))
        except GraphdError as error:
            if error.reason != "THREAD_NOT_FOUND":
                raise
            return
        if state is not None:
            reader = SnapshotReader(self.local.config, self.program.readable_programs())
            self.translator.set_progress(reader.read_snapshot(state).tasks)

    def _write_input(self, spec: run_pb2.RunSpec) -> None:
        # An input for an old checkpoint, or for later: written to the state as
        # the input that it is, so that a run without input goes on with it.
        ensure_thread(self.connection, self.program, self.thread)
        update = ts.UpdateStateRequest(
            thread_id=self.thread,
            values=spec.input,
            as_node=AS_INPUT,
            supersede_interrupts=True,
            request_id=uuid.uuid4().hex,
        )
        update.at.checkpoint_id = spec.expected_checkpoint_id
        retry_write(self.connection.server.stubs.threads.UpdateState, update)
        spec.ClearField("input")
        spec.ClearField("expected_checkpoint_id")

    def _recover_from(self, error: GraphdError) -> GraphdError | None:
        """What to raise, or None after the request was changed to a better one."""
        if self._first is not None:
            return self._first
        request = self.request
        if isinstance(request, gs.ResumeRequest) and "breakpointIds" in error.metadata:
            # A breakpoint is no question: LangGraph goes on and drops the answer.
            self._first = error
            request.resume.ClearField("single")
            request.resume.ClearField("responses")
            request.request_id += ".b"
            return None
        if self._does_without(error) or self._discards_now(error):
            return None
        if isinstance(request, gs.ResumeRequest) and error.reason == "THREAD_NOT_FOUND":
            text = "the thread has never run, so nothing waits for an answer"
            return NothingToResumeError(text, reason=error.reason, code=error.code, metadata=error.metadata)
        began = isinstance(request, gs.ResumeRequest) or request.run.WhichOneof("start")
        if not began and "input" in error.violations:
            text = "Received no input for __start__"
            return EmptyInput(text, reason=error.reason, code=error.code, violations=error.violations)
        return error

    def _does_without(self, error: GraphdError) -> bool:
        """Whether the request goes without a right from now on that the caller has not got."""
        request = self.request
        if error.reason != "ACCESS_DENIED" or self._insists:
            return False
        right = error.metadata.get("rule", "").removeprefix("right: ")
        if right == DISCARD_QUESTIONS and not isinstance(request, gs.ResumeRequest):
            request.run.ClearField("open_interrupts")
        elif right == REPLACE_SETTINGS and isinstance(request, gs.ResumeRequest) and not self.gives_settings:
            request.resume.ClearField("settings")
        else:
            return False
        self.connection.server.missing_rights.add(right)
        request.request_id += ".w"
        return True

    def _discards_now(self, error: GraphdError) -> bool:
        """Whether the request drops open questions from now on: there are some, and it was to do without the right."""
        policy = run_pb2.OPEN_INTERRUPT_POLICY_DISCARD
        request = self.request
        if error.reason != "THREAD_INTERRUPTED" or isinstance(request, gs.ResumeRequest):
            return False
        if request.run.open_interrupts == policy:
            return False
        request.run.open_interrupts = policy
        request.request_id += ".d"
        self._insists = True
        return True

    def _open_questions(self, run: run_pb2.Run) -> list[Any]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED or self.translator.has_raised(run.open_interrupt_ids):
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
        restore_values(self.connection.server.stubs, self.translator.program_of(event), event)

    def _final_items(self, run: run_pb2.Run) -> list[Item]:
        """What is shown when the run has stopped."""
        if not self.translator.wants_final:
            items = list(self.translator.open_question_items(self._open_questions(run)))
            items.extend(self.translator.held_items())
            if run.state == run_pb2.RUN_STATE_INTERRUPTED:
                items.extend(self.translator.breakpoint_items(run.open_interrupt_ids))
            return items
        if run.state == run_pb2.RUN_STATE_SUCCEEDED and run.HasField("output"):
            return [self.translator.final_item(values_of(self.program, run.output), ())]
        if run.state not in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_INTERRUPTED):
            return []
        return [self.translator.final_item(*self._read_end(run))]

    def _raise_failure(self, run: run_pb2.Run) -> None:
        error = error_of_run(run, self.local)
        if error is not None:
            raise error

    @contextlib.contextmanager
    def _cancel_on_drain(self) -> Iterator[None]:
        control = self.local.control
        if control is None:
            yield
            return
        stop = control.on_drain(self._cancel_run)
        try:
            yield
        finally:
            stop()

    def _cancel_run(self, reason: str) -> None:
        request = gs.CancelRunRequest(thread_id=self.thread, reason=reason)
        request.grace.FromSeconds(3600)
        with contextlib.suppress(GraphdError):
            call_unary(self.connection.server.stubs.graphs.CancelRun, request)

    def _delete_thread(self) -> None:
        request = ts.DeleteThreadRequest(thread_id=self.thread, force=True)
        with contextlib.suppress(GraphdError):
            call_unary(self.connection.server.stubs.threads.DeleteThread, request)

    # Plain.

    def stream_items(self) -> Iterator[Item]:
        """Runs, and yields what happens."""
        self.prepare()
        with register_call(*self._key, self.local), self._cancel_on_drain():
            try:
                while True:
                    try:
                        yield from self._stream_attempt()
                        return
                    except GraphdError as error:
                        if (problem := self._recover_from(error)) is not None:
                            raise problem from problem.__cause__
            finally:
                if self.temporary:
                    self._delete_thread()

    def _stream_attempt(self) -> Iterator[Item]:
        with contextlib.closing(UnassignedTasks(self.connection)) as unassigned:
            for event in self._read_events():
                unassigned.observe_event(event)
                if event.value_omitted:
                    self._restore_values(event)
                yield from self.translator.translate_event(event)
                if event.HasField("end"):
                    yield from self._final_items(event.end.run)
                    self._raise_failure(event.end.run)

    def _read_events(self) -> Iterator[event_pb2.Event]:
        stream = ResumableStream(self.request)
        while True:
            call, problem = stream.open_next(self.connection.server.stubs.graphs), None
            try:
                for event in call:
                    if stream.record_event(event):
                        yield event
                    if stream.is_last(event):
                        return
            except grpc.RpcError as error:
                problem = to_graphd_error(error)
            finally:
                call.cancel()
            time.sleep(stream.next_pause(problem))

    # Async.

    async def astream_items(self) -> AsyncIterator[Item]:
        """Like stream_items, for async programs."""
        self.local.loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.prepare)
        with register_call(*self._key, self.local), self._cancel_on_drain():
            try:
                while True:
                    try:
                        async for item in self._astream_attempt():
                            yield item
                        return
                    except GraphdError as error:
                        if (problem := self._recover_from(error)) is not None:
                            raise problem from problem.__cause__
            except asyncio.CancelledError:
                await self._cancel_for_caller()
                raise
            finally:
                if self.temporary:
                    await asyncio.shield(asyncio.to_thread(self._delete_thread))

    async def _astream_attempt(self) -> AsyncIterator[Item]:
        async with contextlib.aclosing(self._aread_events()) as events:
            with contextlib.closing(UnassignedTasks(self.connection)) as unassigned:
                async for event in events:
                    unassigned.observe_event(event)
                    if event.value_omitted:
                        await asyncio.to_thread(self._restore_values, event)
                    for item in self.translator.translate_event(event):
                        yield item
                    if event.HasField("end"):
                        for item in await self._afinal_items(event.end.run):
                            yield item
                        self._raise_failure(event.end.run)

    async def _aread_events(self) -> AsyncGenerator[event_pb2.Event, None]:
        stream = ResumableStream(self.request)
        while True:
            call, problem = stream.open_next(self.connection.server.astubs.graphs), None
            try:
                async for event in call:
                    if stream.record_event(event):
                        yield event
                    if stream.is_last(event):
                        return
            except grpc.RpcError as error:
                problem = to_graphd_error(error)
            finally:
                call.cancel()
            await asyncio.sleep(stream.next_pause(problem))

    async def _afinal_items(self, run: run_pb2.Run) -> list[Item]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED:
            return self._final_items(run)
        return await asyncio.to_thread(self._final_items, run)

    async def _cancel_for_caller(self) -> None:
        # The caller was cancelled; its nodes run on its loop and stop with it.
        self.local.cancelled = True
        request = gs.CancelRunRequest(thread_id=self.thread, reason="the caller was cancelled", wait=True)
        with contextlib.suppress(GraphdError):
            await asyncio.shield(acall_unary(self.connection.server.astubs.graphs.CancelRun, request))
