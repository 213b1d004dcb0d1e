"""Runs attempts: plain functions in threads, coroutines on their loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.runtime import local_runs
from graphd.runtime.reader_gate import HeldTask, ReaderGate
from graphd.runtime.replay import Replay
from graphd.runtime.task import current_scope, enter_task
from graphd.security import Target
from graphd.worker import cache, outcome
from graphd.worker.attempt import Attempt
from graphd.worker.background_loop import find_loop
from graphd.worker.failure_log import log_failure
from graphd.worker.prepare_work import prepare_work
from graphd.worker.reducer import run_reducer
from graphd.worker.run_work import arun_work, run_work
from graphd.worker.span import note_end, span_task
from graphd.worker.start_rules import runs_on_loop, waits_for_reader
from graphd.worker.traced_work import TracedWork, trace_work
from graphd.worker.work import Work

_DELIVERIES = 32  # results that are handed over by calls at a time


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt to run, and what takes its result."""

    attempt: Attempt
    program: Program
    done: Callable[[Attempt, pb.TaskResult], Job | None]  # waits, and returns what to run next, if there is something
    send: Callable[[Attempt, pb.TaskResult], None]  # does not wait


class Runner:
    """Threads and loops for the attempts of one session."""

    def __init__(self, target: Target, threads: int) -> None:
        self._target = target
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="graphd-node")
        # Nodes may hold all of their threads for hours; the results of others must not wait for that.
        self._deliveries = concurrent.futures.ThreadPoolExecutor(_DELIVERIES, thread_name_prefix="graphd-result")
        self._lock = threading.Lock()
        self._gates: set[ReaderGate] = set()  # that hold tasks
        self._closed = False

    def resize_pool(self, threads: int) -> None:
        """Allows more threads; those that wait for other tasks don't count."""
        with self._lock:
            self._pool._max_workers = max(self._pool._max_workers, threads)

    def choose_program(self, assignment: pb.TaskAssignment, served: Program) -> Program:
        """The graph that this process has called, if it was compiled of the same builder: it may have
        another cache and another store."""
        local = local_runs.find_call(self._target, assignment.thread_id, assignment.run_id)
        called: Program | None = local.program if local else None
        if called is None or called.name != served.name or called.builder is not served.builder:
            return served
        return called

    def start_job(self, job: Job | None) -> None:
        """Begins an attempt, in a thread if it needs one, and then those that follow it."""
        if job is None or self._closed:
            return
        assignment = job.attempt.assignment
        if local_runs.is_left(self._target, assignment.run_id):
            job.send(job.attempt, _build_stopped_result())
            return
        local = local_runs.find_call(self._target, assignment.thread_id, assignment.run_id)
        gate = local.gate if local else None
        if gate is not None and waits_for_reader(assignment, job.program):
            self._hold_job(job, gate)
        else:
            self._begin_job(job, local)

    def _begin_job(self, job: Job, local: local_runs.LocalRun | None) -> None:
        if runs_on_loop(job.attempt.assignment, job.program):
            self._start_coroutine(job, local)
        else:
            with contextlib.suppress(RuntimeError):  # it is closed, or the process ends: others get what is left
                self._pool.submit(self._run_jobs, job)

    def _hold_job(self, job: Job, gate: ReaderGate) -> None:
        """Begins an attempt when the reader of its run has come so far, unless it is stopped before."""
        attempt = job.attempt
        attempt.begin_without_thread()

        def begin() -> None:
            attempt.end_without_thread()
            attempt.cancel = _do_nothing
            if attempt.stopped or local_runs.is_left(self._target, attempt.assignment.run_id):
                job.send(job.attempt, _build_stopped_result())
            else:
                assignment = attempt.assignment
                self._begin_job(job, local_runs.find_call(self._target, assignment.thread_id, assignment.run_id))

        attempt.cancel = lambda: gate.withdraw(attempt.task)
        gate.submit(HeldTask(attempt.task, attempt.assignment.step, begin))
        with self._lock:
            self._gates.add(gate)
        if attempt.stopped:  # before there was something to cancel
            gate.withdraw(attempt.task)

    @property
    def holds_tasks(self) -> bool:
        """Tasks wait for readers, or have done so at the last look."""
        return bool(self._gates)

    def check_gates(self) -> None:
        """Begins the tasks that are held for readers which wait in vain. Called again and again."""
        with self._lock:  # a gate that begins to hold right now is added after this
            self._gates = {gate for gate in self._gates if gate.is_holding}
            holding = list(self._gates)
        for gate in holding:
            gate.check_patience()

    def submit_delivery(self, deliver: Callable[[], Job | None]) -> None:
        """Hands a result over in a thread that runs no nodes, and begins what follows it."""
        with contextlib.suppress(RuntimeError):  # it is closed, or the process ends: others get what is left
            self._deliveries.submit(lambda: self.start_job(deliver()))

    def close(self) -> None:
        """Begins nothing any more."""
        self._closed = True
        self._pool.shutdown(wait=False)
        self._deliveries.shutdown(wait=False)

    def _run_jobs(self, job: Job | None) -> None:
        while job is not None:
            assignment = job.attempt.assignment
            local = local_runs.find_call(self._target, assignment.thread_id, assignment.run_id)
            try:
                result = self._run_job(job, local)
            except BaseException as error:  # beats keep the task here, so it must have a result
                result = _build_broken_result(job, local, error)
            job = self._take_over(job.done(job.attempt, result)) if result is not None else None

    def _take_over(self, following: Job | None) -> Job | None:
        """A job that the thread of another one runs at once; one that may have to wait, or is to be left, is begun."""
        if following is None:
            return None
        assignment = following.attempt.assignment
        local = local_runs.find_call(self._target, assignment.thread_id, assignment.run_id)
        if (local is None or local.gate is None) and not local_runs.is_left(self._target, assignment.run_id):
            return following
        self.start_job(following)
        return None

    def _run_job(self, job: Job, local: local_runs.LocalRun | None) -> pb.TaskResult | None:
        """The result of an attempt, None if it goes on elsewhere. Raises what
        code around the node raises, e.g. a schema that does not take the state."""
        program, assignment = job.program, job.attempt.assignment
        if job.attempt.stopped:
            return _build_stopped_result()
        if assignment.kind == pb.TASK_KIND_REDUCER:
            with span_task(assignment):
                return run_reducer(assignment, program)
        work = _prepare_work(job, local)
        remembered = cache.look_up_result(program, work)
        if remembered is not None:
            return remembered
        if work.action.is_async:
            self._start_coroutine(job, local, work)
            return None
        traced = trace_work(assignment, program, work)
        variables = local.variables.copy() if local else contextvars.Context()
        result = variables.run(_run_in_task, assignment, work, traced)
        _end_work(job, work, result)
        return result

    def _start_coroutine(self, job: Job, local: local_runs.LocalRun | None, work: Work | None = None) -> None:
        """Begins an attempt on its loop, which prepares the work unless a thread has done it."""
        variables = local.variables.copy() if local else contextvars.Context()
        begun = _CoroutineJob(job, local, find_loop(local), work)
        job.attempt.begin_without_thread()
        try:
            begun.loop.call_soon_threadsafe(begun.begin, context=variables)
        except RuntimeError as error:  # the caller has just closed its loop
            begun.end(_build_broken_result(job, local, error))


class _CoroutineJob:
    """An attempt on its loop: one object, for thousands wait at a time."""

    __slots__ = ("job", "local", "loop", "task", "work")

    def __init__(
        self, job: Job, local: local_runs.LocalRun | None, loop: asyncio.AbstractEventLoop, work: Work | None
    ) -> None:
        self.job, self.local, self.loop, self.work = job, local, loop, work
        self.task: asyncio.Task[pb.TaskResult] | None = None

    def begin(self) -> None:
        """Runs on the loop."""
        job = self.job
        if job.attempt.stopped:
            self.end(_build_stopped_result())
            return
        try:
            self.work = self.work or _prepare_work(job, self.local)
            traced = trace_work(job.attempt.assignment, job.program, self.work)
            self.task = self.loop.create_task(_arun_in_task(job.attempt.assignment, self.work, traced))
        except BaseException as error:
            self.end(_build_broken_result(job, self.local, error))
            return
        job.attempt.cancel = self._cancel
        if job.attempt.stopped:  # between the two: stop_task marks the attempt, and then looks for what to cancel
            self.task.cancel()
        self.task.add_done_callback(self._take_result)

    def _cancel(self) -> None:
        if self.task is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.task.cancel)

    def _take_result(self, task: asyncio.Task[pb.TaskResult]) -> None:
        assert self.work is not None
        self.end(_read_result(self.job, self.work, task))

    def end(self, result: pb.TaskResult) -> None:
        """Hands over the result."""
        self.job.attempt.end_without_thread()
        self.job.send(self.job.attempt, result)


def _build_stopped_result() -> pb.TaskResult:
    return pb.TaskResult(cancelled=pb.TaskCancelled(note="it was stopped before it began"))


def _do_nothing() -> None:
    """Cancels an attempt that can't be stopped: its thread runs to the end."""


def _prepare_work(job: Job, local: local_runs.LocalRun | None) -> Work:
    work = prepare_work(job.attempt.assignment, job.program, job.attempt, local, job.attempt.kept)
    job.attempt.muted = partial(_is_muted, work.task.replay)
    return work


def _is_muted(replay: Replay) -> bool:
    return replay.is_muted(current_scope())


def _read_result(job: Job, work: Work, task: asyncio.Task[pb.TaskResult]) -> pb.TaskResult:
    """The result of a coroutine that has ended."""
    if task.cancelled():
        return pb.TaskResult(cancelled=pb.TaskCancelled(note="the loop of the node was stopped"))
    try:
        result = task.result()
        _end_work(job, work, result)
        return result
    except BaseException as error:
        return _build_broken_result(job, work.local, error)


def _build_broken_result(job: Job, local: local_runs.LocalRun | None, error: BaseException) -> pb.TaskResult:
    log_failure(job.attempt.assignment, error, is_raised_here=local is not None)
    attempt = job.attempt
    local_runs.note_error(attempt.target, attempt.thread, attempt.task, error)
    return pb.TaskResult(failed=outcome.build_failed(error, ()))


def _end_work(job: Job, work: Work, result: pb.TaskResult) -> None:
    # A coroutine that the server has stopped did not fail.
    if work.error is not None and not job.attempt.stopped:
        log_failure(job.attempt.assignment, work.error, is_raised_here=work.local is not None)
    work.release_errors()
    cache.store_result(job.program, work, result)


def _run_in_task(assignment: pb.TaskAssignment, work: Work, traced: TracedWork | None) -> pb.TaskResult:
    enter_task(work.task)
    with span_task(assignment) as span:
        manager = traced.run_steps(traced.start()) if traced is not None else None
        with work.task.environment.stream_tokens(work.task, manager):
            result = run_work(work)
        if traced is not None:
            traced.run_steps(traced.end(result))
        note_end(span, result)
    return result


async def _arun_in_task(assignment: pb.TaskAssignment, work: Work, traced: TracedWork | None) -> pb.TaskResult:
    enter_task(work.task)
    with span_task(assignment) as span:
        manager = await traced.arun_steps(traced.start()) if traced is not None else None
        with work.task.environment.stream_tokens(work.task, manager):
            result = await arun_work(work)
        if traced is not None:
            await traced.arun_steps(traced.end(result))
        note_end(span, result)
    return result
