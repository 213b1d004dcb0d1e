"""The threads and the loops of a worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from typing_extensions import TypedDict

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.graph import START, StateGraph
from graphd.runtime import reader_gate
from graphd.runtime.local_runs import LocalRun, register_call
from graphd.runtime.reader_gate import ReaderGate
from graphd.security import Target
from graphd.worker.attempt import Attempt
from graphd.worker.runner import Job, Runner

HERE = Target("nowhere")


class State(TypedDict):
    n: int


class SessionStub:
    """A session without a server, whose tasks are never lost."""

    target, store, is_sure = HERE, None, True

    def send_request(self, request: ws.ConnectRequest) -> None: ...
    def begin_without_thread(self, size: int) -> None: ...
    def end_without_thread(self, size: int) -> None: ...


class Results:
    """Takes the results of jobs, in order."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str]] = []
        self._changed = threading.Condition()

    def add(self, task: str, result: pb.TaskResult) -> None:
        with self._changed:
            self.taken.append((task, result.WhichOneof("outcome") or ""))
            self._changed.notify_all()

    def wait_for(self, number: int) -> list[tuple[str, str]]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.taken) >= number, 60), self.taken
            return list(self.taken)


def build_job(
    node: Callable[..., Any], results: Results, task: str, thread: str = "", following: Job | None = None
) -> Job:
    program = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(worker=False).program
    assignment = pb.TaskAssignment(
        thread_id=thread or task, task_id=task, node="node", kind=pb.TASK_KIND_NODE, lease={"token": task.encode()}
    )
    attempt = Attempt(assignment, SessionStub())  # type: ignore[arg-type]

    def done(_: Attempt, result: pb.TaskResult) -> Job | None:
        results.add(task, result)
        return following

    return Job(attempt, program, done, lambda _, result: results.add(task, result))


def stop(job: Job) -> None:
    """Stops a job as a session does."""
    job.attempt.stopped = True
    job.attempt.cancel()


def test_what_comes_after_the_end_is_left_to_others() -> None:
    runner, delivered = Runner(HERE, 1), list[pb.TaskResult]()
    runner.close()
    runner.start_job(object())  # type: ignore[arg-type]
    runner.submit_delivery(lambda: delivered.append(pb.TaskResult()))
    assert not delivered


def test_a_coroutine_that_is_stopped_before_its_loop_has_time_does_not_begin() -> None:
    runner, results, ran = Runner(HERE, 1), Results(), []

    async def node(state: State) -> State:
        ran.append(state)
        return state

    async def call() -> None:
        with register_call(HERE, "t", LocalRun({}, loop=asyncio.get_running_loop())):
            job = build_job(node, results, "a", "t")
            runner.start_job(job)  # the loop is busy with this very code
            stop(job)
            await asyncio.to_thread(results.wait_for, 1)

    asyncio.run(call())
    runner.close()
    assert (results.taken, ran) == ([("a", "cancelled")], [])


def test_a_function_that_is_stopped_before_a_thread_is_free_does_not_begin() -> None:
    runner, results, ran, go_on = Runner(HERE, 1), Results(), [], threading.Event()

    def wait(state: State) -> State:
        assert go_on.wait(120)
        return state

    def node(state: State) -> State:
        ran.append(state)
        return state

    job = build_job(node, results, "b")
    runner.start_job(build_job(wait, results, "a"))
    runner.start_job(job)
    stop(job)
    go_on.set()
    assert sorted(results.wait_for(2)) == [("a", "completed"), ("b", "cancelled")]
    runner.close()
    assert not ran


def test_a_result_is_handed_over_while_all_threads_of_nodes_are_taken() -> None:
    runner, results, go_on, delivered = Runner(HERE, 1), Results(), threading.Event(), threading.Event()

    def wait(state: State) -> State:
        assert go_on.wait(120)
        return state

    runner.start_job(build_job(wait, results, "a"))
    runner.submit_delivery(delivered.set)
    try:
        assert delivered.wait(60)
    finally:
        go_on.set()
    results.wait_for(1)
    runner.close()


def test_the_next_task_waits_for_the_reader_of_its_own_run() -> None:
    runner, results, gate = Runner(HERE, 1), Results(), ReaderGate()

    def node(state: State) -> State:
        return state

    with register_call(HERE, "read", LocalRun({}, gate=gate)):
        following = build_job(node, results, "b", "read")
        runner.start_job(build_job(node, results, "a", "elsewhere", following))
        results.wait_for(1)
        runner.start_job(build_job(node, results, "c", "elsewhere"))  # in the only thread, after it
        assert results.wait_for(2) == [("a", "completed"), ("c", "completed")]
        gate.open()
        assert results.wait_for(3)[2] == ("b", "completed")
    runner.close()


def test_a_reader_that_waits_in_vain_gets_all_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, results, gate = Runner(HERE, 1), Results(), ReaderGate()
    with register_call(HERE, "read", LocalRun({}, gate=gate)):
        runner.start_job(build_job(lambda state: state, results, "a", "read"))
        runner.check_gates()
        gate.mark_waiting()
        runner.check_gates()
        assert results.taken == [], "it has waited for a moment only"
        monkeypatch.setattr(reader_gate, "_PATIENCE", 0.0)
        runner.check_gates()
        assert results.wait_for(1) == [("a", "completed")]
        runner.check_gates()
        assert runner._gates == set(), "a gate that holds nothing is not looked at"
    runner.close()
