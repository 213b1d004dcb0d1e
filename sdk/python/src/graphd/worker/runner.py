"""Runs attempts: plain functions in threads, coroutines on their loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.runtime import local_runs
from graphd.runtime.task import current_scope, enter_task
from graphd.security import Target
from graphd.worker import cache, execute, outcome
from graphd.worker.attempt import Attempt
from graphd.worker.background_loop import background_loop
from graphd.worker.tokens import provide_callbacks
from graphd.worker.traced_work import TracedWork, trace_work


@dataclass(frozen=True)
class Job:
    """An attempt to run, and where its result goes; that returns what to run
    next, if there is something."""

    attempt: Attempt
    program: Program
    done: Callable[[pb.TaskResult], Job | None]


class Runner:
    """Threads and loops for the attempts of one session."""

    def __init__(self, target: Target, threads: int) -> None:
        self._target = target
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="graphd-node")
        self._lock = threading.Lock()

    def resize_pool(self, threads: int) -> None:
        """Allows more threads; those that wait for other tasks don't count."""
        with self._lock:
            self._pool._max_workers = max(self._pool._max_workers, threads)

    def start_job(self, job: Job | None) -> None:
        """Begins an attempt, in a thread, and then those that follow it."""
        if job is not None:
            self.submit_task(lambda: job)

    def submit_task(self, task: Callable[[], Job | None]) -> None:
        """Does something else in a thread, and then what follows it."""
        with contextlib.suppress(RuntimeError):  # it is closed, or the process ends: others get what is left
            self._pool.submit(lambda: self._run_jobs(task()))

    def close(self) -> None:
        """Begins nothing any more."""
        self._pool.shutdown(wait=False)

    def _run_jobs(self, job: Job | None) -> None:
        while job is not None:
            local = local_runs.find_call(self._target, job.attempt.assignment.thread_id)
            try:
                result = self._run_job(job, local)
            except BaseException as error:  # beats keep the task here, so it must have a result
                result = _build_broken_result(job, local, error)
            job = job.done(result) if result is not None else None

    def _run_job(self, job: Job, local: local_runs.LocalRun | None) -> pb.TaskResult | None:
        """The result of an attempt, None if it goes on elsewhere. Raises what
        code around the node raises, e.g. a schema that does not take the state."""
        attempt, program, assignment = job.attempt, job.program, job.attempt.assignment
        if assignment.kind == pb.TASK_KIND_REDUCER:
            return execute.run_reducer(assignment, program)
        work = execute.prepare_work(assignment, program, attempt, local)
        remembered = cache.look_up_result(program, work)
        attempt.muted = lambda: work.task.replay.is_muted(current_scope())
        if remembered is not None:
            return remembered
        if work.action.is_async:
            self._run_async(job, work)
            return None
        traced = trace_work(assignment, program, work)
        variables = local.variables.copy() if local else contextvars.Context()
        result = variables.run(_run_in_task, work, traced)
        cache.store_result(program, work, result)
        return result

    def _run_async(self, job: Job, work: execute.Work) -> None:
        local = work.local
        loop = local.loop if local and local.loop and local.loop.is_running() else background_loop()
        variables = local.variables.copy() if local else contextvars.Context()

        traced = trace_work(job.attempt.assignment, job.program, work)

        def begin() -> None:
            task = loop.create_task(_arun_in_task(work, traced))
            job.attempt.cancel = lambda: _cancel_task(loop, task)
            task.add_done_callback(end)

        def end(task: asyncio.Task[pb.TaskResult]) -> None:
            if task.cancelled():
                result = pb.TaskResult(cancelled=pb.TaskCancelled(note="the loop of the node was stopped"))
            else:
                try:
                    result = task.result()
                    cache.store_result(job.program, work, result)
                except BaseException as error:
                    result = _build_broken_result(job, local, error)
            self.submit_task(lambda: job.done(result))

        loop.call_soon_threadsafe(begin, context=variables)


def _build_broken_result(job: Job, local: local_runs.LocalRun | None, error: BaseException) -> pb.TaskResult:
    if local is not None:
        local.errors[job.attempt.assignment.task_id] = error
    return pb.TaskResult(failed=outcome.build_failed(error, ()))


def _cancel_task(loop: asyncio.AbstractEventLoop, task: asyncio.Task[pb.TaskResult]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)


def _run_in_task(work: execute.Work, traced: TracedWork | None) -> pb.TaskResult:
    enter_task(work.task)
    manager = traced.run_steps(traced.start()) if traced is not None else None
    provide_callbacks(work.task, manager, tokens=_wants_tokens(work))
    result = execute.run_work(work)
    if traced is not None:
        traced.run_steps(traced.end(result))
    return result


async def _arun_in_task(work: execute.Work, traced: TracedWork | None) -> pb.TaskResult:
    enter_task(work.task)
    manager = await traced.arun_steps(traced.start()) if traced is not None else None
    provide_callbacks(work.task, manager, tokens=_wants_tokens(work))
    result = await execute.arun_work(work)
    if traced is not None:
        await traced.arun_steps(traced.end(result))
    return result


def _wants_tokens(work: execute.Work) -> bool:
    # The client of a run that another process started may want the tokens.
    return work.local is None or work.local.tokens
