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
from graphd.runtime import here
from graphd.runtime.task import current_scope, enter
from graphd.worker import cache, execute, outcome
from graphd.worker.attempt import Attempt
from graphd.worker.loop import background_loop
from graphd.worker.tokens import streamed


@dataclass(frozen=True)
class Job:
    """An attempt to run, and where its result goes; that returns what to run
    next, if there is something."""

    attempt: Attempt
    program: Program
    done: Callable[[pb.TaskResult], Job | None]


class Runner:
    """Threads and loops for the attempts of one session."""

    def __init__(self, address: str, threads: int) -> None:
        self._address = address
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="graphd-node")
        self._lock = threading.Lock()

    def resize(self, threads: int) -> None:
        """Allows more threads; those that wait for other tasks don't count."""
        with self._lock:
            self._pool._max_workers = max(self._pool._max_workers, threads)

    def start(self, job: Job | None) -> None:
        """Begins an attempt, in a thread, and then those that follow it."""
        if job is not None:
            self.work(lambda: job)

    def work(self, task: Callable[[], Job | None]) -> None:
        """Does something else in a thread, and then what follows it."""
        with contextlib.suppress(RuntimeError):  # it is closed, or the process ends: others get what is left
            self._pool.submit(lambda: self._work(task()))

    def close(self) -> None:
        """Begins nothing any more."""
        self._pool.shutdown(wait=False)

    def _work(self, job: Job | None) -> None:
        while job is not None:
            local = here.find(self._address, job.attempt.assignment.thread_id)
            try:
                result = self._run(job, local)
            except BaseException as error:  # nobody gives up a task that is beaten for: it must have a result
                result = _broken(job, local, error)
            job = job.done(result) if result is not None else None

    def _run(self, job: Job, local: here.LocalRun | None) -> pb.TaskResult | None:
        """The result of an attempt, None if it goes on elsewhere. Raises what
        code around the node raises, e.g. a schema that does not take the state."""
        attempt, program, assignment = job.attempt, job.program, job.attempt.assignment
        if assignment.kind == pb.TASK_KIND_REDUCER:
            return execute.reduce(assignment, program)
        work = execute.prepare(assignment, program, attempt, local)
        remembered = cache.look_up(program, work)
        attempt.muted = lambda: work.task.replay.muted(current_scope())
        if remembered is not None:
            return remembered
        if work.action.is_async:
            self._run_async(job, work)
            return None
        variables = local.variables.copy() if local else contextvars.Context()
        result = variables.run(_run_inside, work)
        cache.keep(program, work, result)
        return result

    def _run_async(self, job: Job, work: execute.Work) -> None:
        local = work.local
        loop = local.loop if local and local.loop and local.loop.is_running() else background_loop()
        variables = local.variables.copy() if local else contextvars.Context()

        def begin() -> None:
            task = loop.create_task(_arun_inside(work))
            job.attempt.cancel = lambda: _cancel(loop, task)
            task.add_done_callback(end)

        def end(task: asyncio.Task[pb.TaskResult]) -> None:
            if task.cancelled():
                result = pb.TaskResult(cancelled=pb.TaskCancelled(note="the loop of the node was stopped"))
            else:
                try:
                    result = task.result()
                    cache.keep(job.program, work, result)
                except BaseException as error:
                    result = _broken(job, local, error)
            self.work(lambda: job.done(result))

        loop.call_soon_threadsafe(begin, context=variables)


def _broken(job: Job, local: here.LocalRun | None, error: BaseException) -> pb.TaskResult:
    if local is not None:
        local.errors[job.attempt.assignment.task_id] = error
    return pb.TaskResult(failed=outcome.failed(error, ()))


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[pb.TaskResult]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)


def _run_inside(work: execute.Work) -> pb.TaskResult:
    enter(work.task)
    with streamed(work.task, _tokens(work)):
        return execute.run(work)


async def _arun_inside(work: execute.Work) -> pb.TaskResult:
    enter(work.task)
    with streamed(work.task, _tokens(work)):
        return await execute.arun(work)


def _tokens(work: execute.Work) -> bool:
    # Of a run that another process has started anybody may want the tokens.
    return work.local is None or work.local.tokens
