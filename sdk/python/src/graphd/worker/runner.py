"""Runs attempts: plain functions in threads, coroutines on their loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable

from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.graph.program import Program
from graphd.runtime.task import inside
from graphd.worker import cache, execute, here, outcome
from graphd.worker.attempt import Attempt
from graphd.worker.loop import background_loop
from graphd.worker.tokens import streamed

Done = Callable[[pb.TaskResult], None]


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

    def start(self, attempt: Attempt, program: Program, done: Done) -> None:
        """Begins an attempt; done is called with its result, in a thread."""
        self._pool.submit(self._run, attempt, program, done)

    def close(self) -> None:
        """Begins nothing any more."""
        self._pool.shutdown(wait=False)

    def _run(self, attempt: Attempt, program: Program, done: Done) -> None:
        assignment = attempt.assignment
        try:
            if assignment.kind == pb.TASK_KIND_REDUCER:
                done(execute.reduce(assignment, program))
                return
            local = here.find(self._address, assignment.thread_id)
            work = execute.prepare(assignment, program, attempt, local)
            remembered = cache.look_up(program, work)
        except Exception as error:  # e.g. a state that its schema does not take
            done(pb.TaskResult(failed=outcome.failed(error, ())))
            return
        attempt.muted = lambda: work.task.replay.muted
        if remembered is not None:
            done(remembered)
        elif work.action.is_async:
            self._run_async(attempt, program, work, done)
        else:
            variables = local.variables.copy() if local else contextvars.Context()
            result = variables.run(_run_inside, work)
            cache.keep(program, work, result)
            done(result)

    def _run_async(self, attempt: Attempt, program: Program, work: execute.Work, done: Done) -> None:
        local = work.local
        loop = local.loop if local and local.loop and local.loop.is_running() else background_loop()
        variables = local.variables.copy() if local else contextvars.Context()

        def begin() -> None:
            task = loop.create_task(_arun_inside(work))
            attempt.cancel = lambda: _cancel(loop, task)
            task.add_done_callback(end)

        def end(task: asyncio.Task[pb.TaskResult]) -> None:
            if task.cancelled():
                result = pb.TaskResult(cancelled=pb.TaskCancelled(note="the loop of the node was stopped"))
            else:
                result = task.result()
                cache.keep(program, work, result)
            self._pool.submit(done, result)

        loop.call_soon_threadsafe(begin, context=variables)


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[pb.TaskResult]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)


def _run_inside(work: execute.Work) -> pb.TaskResult:
    with inside(work.task), streamed(work.task):
        return execute.run(work)


async def _arun_inside(work: execute.Work) -> pb.TaskResult:
    with inside(work.task), streamed(work.task):
        return await execute.arun(work)
