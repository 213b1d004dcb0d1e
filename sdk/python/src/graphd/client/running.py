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

from graphd._gen.v1 import event_pb2, run_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.failures import raised_by
from graphd.client.home import Home
from graphd.client.items import Item
from graphd.client.lonely import LonelyTasks
from graphd.client.snapshots import values_of
from graphd.client.states import ensure_thread
from graphd.client.trail import Trail
from graphd.client.translate import Translator
from graphd.client.updates import AS_INPUT
from graphd.declare.program import Program
from graphd.errors import GraphdError, GraphDrained, NothingToResumeError
from graphd.runtime.here import LocalRun, calling
from graphd.transport.errors import EmptyInput, describe
from graphd.transport.server import aunary, read, unary, write

Request = Any  # gs.StreamRequest | gs.ResumeRequest


@dataclass
class Running:
    """One call, ready to be made."""

    home: Home
    program: Program
    request: Request
    translator: Translator
    local: LocalRun
    thread: str
    temporary: bool
    _first: GraphdError | None = field(default=None, init=False)

    @property
    def _key(self) -> tuple[str, str]:
        return self.home.server.address, self.thread

    # Both ways.

    def prepare(self) -> None:
        """Makes the calls that a run needs before it can begin."""
        spec = self.request.run if isinstance(self.request, gs.StreamRequest) else None
        control = self.local.control
        drained = control is not None and control.drain_requested
        if spec is not None and spec.HasField("input") and (spec.expected_checkpoint_id or drained):
            self._write_input(spec)
        if drained:
            assert control is not None
            raise GraphDrained(control.drain_reason or "")

    def _write_input(self, spec: run_pb2.RunSpec) -> None:
        # An input for an old checkpoint, or for later: written to the state as
        # the input that it is, so that a run without input goes on with it.
        ensure_thread(self.home, self.program, self.thread)
        update = ts.UpdateStateRequest(
            thread_id=self.thread,
            values=spec.input,
            as_node=AS_INPUT,
            supersede_interrupts=True,
            request_id=uuid.uuid4().hex,
        )
        update.at.checkpoint_id = spec.expected_checkpoint_id
        write(self.home.server.stubs.threads.UpdateState, update)
        spec.ClearField("input")
        spec.ClearField("expected_checkpoint_id")

    def _instead(self, error: GraphdError) -> GraphdError | None:
        """What to raise, or None after the request was changed to a better one."""
        if self._first is not None:
            return self._first
        request = self.request
        if isinstance(request, gs.ResumeRequest) and "breakpointIds" in error.metadata:
            # At a breakpoint nobody asks: LangGraph goes on and drops the answer.
            self._first = error
            request.resume.ClearField("single")
            request.resume.ClearField("responses")
            request.request_id += ".b"
            return None
        if isinstance(request, gs.ResumeRequest) and error.reason == "THREAD_NOT_FOUND":
            text = "the thread has never run, so nothing waits for an answer"
            return NothingToResumeError(text, reason=error.reason, code=error.code, metadata=error.metadata)
        began = isinstance(request, gs.ResumeRequest) or request.run.WhichOneof("start")
        if not began and "input" in error.violations:
            text = "Received no input for __start__"
            return EmptyInput(text, reason=error.reason, code=error.code, violations=error.violations)
        return error

    def _open_questions(self, run: run_pb2.Run) -> list[Any]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED or self.translator.has_raised(run.open_interrupt_ids):
            return []
        state = read(self.home.server.stubs.threads.GetState, ts.GetStateRequest(thread_id=self.thread))
        return [i for i in state.interrupts if i.interrupt_id in run.open_interrupt_ids]

    def _last(self, run: run_pb2.Run) -> list[Item]:
        """What is shown when the run has stopped."""
        if not self.translator.wants_final:
            return list(self.translator.still_open(self._open_questions(run)))
        if run.state == run_pb2.RUN_STATE_SUCCEEDED and run.HasField("output"):
            return [self.translator.final(values_of(self.program, run.output), ())]
        if run.state not in (run_pb2.RUN_STATE_SUCCEEDED, run_pb2.RUN_STATE_INTERRUPTED):
            return []
        state = read(self.home.server.stubs.threads.GetState, ts.GetStateRequest(thread_id=self.thread))
        waiting = [i for i in state.interrupts if i.interrupt_id in run.open_interrupt_ids]
        return [self.translator.final(values_of(self.program, state.values), waiting)]

    def _end(self, run: run_pb2.Run) -> None:
        error = raised_by(run, self.local)
        if error is not None:
            raise error

    @contextlib.contextmanager
    def _drainable(self) -> Iterator[None]:
        control = self.local.control
        if control is None:
            yield
            return
        stop = control.on_drain(self._drain)
        try:
            yield
        finally:
            stop()

    def _drain(self, reason: str) -> None:
        request = gs.CancelRunRequest(thread_id=self.thread, reason=reason)
        request.grace.FromSeconds(3600)
        with contextlib.suppress(GraphdError):
            unary(self.home.server.stubs.graphs.CancelRun, request)

    def _forget(self) -> None:
        request = ts.DeleteThreadRequest(thread_id=self.thread, force=True)
        with contextlib.suppress(GraphdError):
            unary(self.home.server.stubs.threads.DeleteThread, request)

    # Plain.

    def items(self) -> Iterator[Item]:
        """Runs, and yields what happens."""
        self.prepare()
        with calling(*self._key, self.local), self._drainable():
            try:
                while True:
                    try:
                        yield from self._attempt()
                        return
                    except GraphdError as error:
                        if (problem := self._instead(error)) is not None:
                            raise problem from None
            finally:
                if self.temporary:
                    self._forget()

    def _attempt(self) -> Iterator[Item]:
        with contextlib.closing(LonelyTasks(self.home)) as lonely:
            for event in self._events():
                lonely.see(event)
                yield from self.translator.items(event)
                if event.HasField("end"):
                    yield from self._last(event.end.run)
                    self._end(event.end.run)

    def _events(self) -> Iterator[event_pb2.Event]:
        trail = Trail(self.request)
        while True:
            call, problem = trail.stream(self.home.server.stubs.graphs), None
            try:
                for event in call:
                    if trail.take(event):
                        yield event
                    if trail.over(event):
                        return
            except grpc.RpcError as error:
                problem = describe(error)
            finally:
                call.cancel()
            time.sleep(trail.pause(problem))

    # Async.

    async def aitems(self) -> AsyncIterator[Item]:
        """Like items, for async programs."""
        self.local.loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.prepare)
        with calling(*self._key, self.local), self._drainable():
            try:
                while True:
                    try:
                        async for item in self._aattempt():
                            yield item
                        return
                    except GraphdError as error:
                        if (problem := self._instead(error)) is not None:
                            raise problem from None
            except asyncio.CancelledError:
                await self._cancelled()
                raise
            finally:
                if self.temporary:
                    await asyncio.shield(asyncio.to_thread(self._forget))

    async def _aattempt(self) -> AsyncIterator[Item]:
        async with contextlib.aclosing(self._aevents()) as events:
            with contextlib.closing(LonelyTasks(self.home)) as lonely:
                async for event in events:
                    lonely.see(event)
                    for item in self.translator.items(event):
                        yield item
                    if event.HasField("end"):
                        for item in await self._alast(event.end.run):
                            yield item
                        self._end(event.end.run)

    async def _aevents(self) -> AsyncGenerator[event_pb2.Event, None]:
        trail = Trail(self.request)
        while True:
            call, problem = trail.stream(self.home.server.astubs.graphs), None
            try:
                async for event in call:
                    if trail.take(event):
                        yield event
                    if trail.over(event):
                        return
            except grpc.RpcError as error:
                problem = describe(error)
            finally:
                call.cancel()
            await asyncio.sleep(trail.pause(problem))

    async def _alast(self, run: run_pb2.Run) -> list[Item]:
        if run.state != run_pb2.RUN_STATE_INTERRUPTED:
            return self._last(run)
        return await asyncio.to_thread(self._last, run)

    async def _cancelled(self) -> None:
        # The caller was cancelled; its nodes run on its loop and stop with it.
        self.local.cancelled = True
        request = gs.CancelRunRequest(thread_id=self.thread, reason="the caller was cancelled", wait=True)
        with contextlib.suppress(GraphdError):
            await asyncio.shield(aunary(self.home.server.astubs.graphs.CancelRun, request))
