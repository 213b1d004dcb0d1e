"""Finished tasks never run again, and those that ask go on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from graphd import memo
from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer, dev
from graphd.func import entrypoint, task
from graphd.runtime import get_runtime
from graphd.types import Command, RetryPolicy, interrupt


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def kept(server: DevServer) -> InMemorySaver:
    return InMemorySaver(server=server.address)


QUICK = RetryPolicy(initial_interval=0.01, jitter=False)


def test_a_retry_of_the_entrypoint_does_not_repeat_finished_tasks(server: DevServer) -> None:
    ran: list[str] = []

    @task
    def work(x: int) -> int:
        ran.append("work")
        return x

    @entrypoint(kept(server), name="func-retry", retry_policy=QUICK)
    def flow(x: int) -> int:
        result = work(x).result()
        ran.append("flow")
        if ran.count("flow") < 3:
            raise ConnectionError("again")
        return result

    assert flow.invoke(1, config("func-retry-1")) == 1
    assert ran == ["work", "flow", "flow", "flow"]


def test_a_retry_of_a_task_does_not_repeat_what_it_has_recorded(server: DevServer) -> None:
    ran: list[str] = []

    @task
    def inner(x: int) -> int:
        ran.append("inner")
        return x

    @task(retry_policy=QUICK)
    def outer(x: int) -> list[Any]:
        found = [inner(x).result(), memo("charge", lambda: ran.append("charge") or "receipt"), interrupt("sure?")]
        ran.append("outer")
        if ran.count("outer") < 2:
            raise ConnectionError("again")
        return [*found, get_runtime().execution_info.node_attempt]  # type: ignore[union-attr]

    @entrypoint(kept(server), name="func-retry-task")
    def flow(x: int) -> Any:
        return outer(x).result()

    flow.invoke(1, config("func-retry-task-1"))
    assert flow.invoke(Command(resume="yes"), config("func-retry-task-1")) == [1, "receipt", "yes", 2]
    assert ran == ["inner", "charge", "outer", "outer"]


def test_tasks_of_one_name_are_told_apart_by_their_order(server: DevServer) -> None:
    """A task of another name that comes or goes does not move the results of the others."""
    ran: list[str] = []
    order = [["a", "b"], ["c", "a", "b"]]
    tasks = {n: task(lambda n=n: ran.append(n) or n, name=n) for n in "abc"}  # type: ignore[misc]

    @entrypoint(kept(server), name="func-order")
    def flow(x: int) -> Any:
        found = [tasks[name]().result() for name in order.pop(0)]
        return [*found, interrupt("go on?")]

    at = config("func-order-1")
    flow.invoke(1, at)
    assert flow.invoke(Command(resume="yes"), at) == ["c", "a", "b", "yes"]
    assert ran == ["a", "b", "c"]


def test_questions_of_tasks_that_run_side_by_side_come_together_in_order(server: DevServer) -> None:
    later = threading.Event()
    ran: list[str] = []

    @task
    def ask(question: str) -> Any:
        if question == "first":
            later.wait(30)
        else:
            later.set()
        answer = interrupt(question)
        ran.append(question)
        return answer

    @entrypoint(kept(server), name="func-parallel")
    def flow(x: int) -> Any:
        return [f.result() for f in [ask("first"), ask("second")]]

    at = config("func-parallel-1")
    asked = flow.invoke(1, at)["__interrupt__"]
    assert [q.value for q in asked] == ["first", "second"]
    assert flow.invoke(Command(resume={asked[1].id: 2, asked[0].id: 1}), at) == [1, 2]
    assert sorted(ran) == ["first", "second"]


def test_a_question_that_a_task_swallows_is_asked(server: DevServer) -> None:
    @task
    def swallow(x: int) -> Any:
        try:
            return interrupt("sure?")
        except BaseException:
            return "swallowed"

    @entrypoint(kept(server), name="func-swallow")
    def flow(x: int) -> Any:
        return swallow(x).result()

    at = config("func-swallow-1")
    assert [q.value for q in flow.invoke(1, at)["__interrupt__"]] == ["sure?"]
    assert flow.invoke(Command(resume="yes"), at) == "yes"


WORKER = """
import os, sys
from graphd.func import entrypoint, task
from graphd.types import interrupt

@task
def prepare(x):
    with open(sys.argv[1], "a") as log:
        log.write(f"prepare {x}\\n")
    return x + 1

@task
def ask(x):
    with open(sys.argv[1], "a") as log:
        log.write(f"ask {x}\\n")
    return interrupt({"amount": x})

@entrypoint(server=os.environ["GRAPHD_SERVER"], name="func-killed")
def flow(x):
    return [prepare(x).result(), ask(x).result(), prepare(x + 10).result()]

print("serves", flush=True)
flow.serve()
"""


def test_another_process_answers_what_a_killed_one_has_asked(server: DevServer, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def start() -> subprocess.Popen[str]:
        environment = os.environ | {"GRAPHD_SERVER": server.address}
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(log)], env=environment, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout is not None and worker.stdout.readline() == "serves\n"
        return worker

    @entrypoint(server=server.address, name="func-killed", worker=False)
    def flow(x: int) -> Any:
        raise AssertionError("a client runs no code of its entrypoint")

    at = config("func-killed-1")
    first = start()
    try:
        asked = flow.invoke(1, at)["__interrupt__"]
    finally:
        first.kill()
        first.communicate()
    assert [q.value for q in asked] == [{"amount": 1}]
    second = start()
    try:
        assert list(flow.stream(Command(resume="yes"), at)) == [
            {"ask": "yes"},
            {"prepare": 12},
            {"flow": [2, "yes", 12]},
        ]
    finally:
        second.kill()
        second.communicate()
    assert log.read_text().splitlines() == ["prepare 1", "ask 1", "ask 1", "prepare 11"]
    assert flow.get_state(at).values == [2, "yes", 12]


DYING = """
import os, sys
from graphd.func import entrypoint, task
from graphd.runtime import get_runtime

@task
def prepare(x):
    print("prepare", flush=True)
    return x + 1

@task
def pay(x):
    print("pay", get_runtime().execution_info.task_id, flush=True)
    if sys.argv[1] == "dies":
        sys.stdin.read()
    return x * 2

@entrypoint(server=os.environ["GRAPHD_SERVER"], name="func-dying")
def flow(x):
    return pay(prepare(x).result()).result()

print("serves", flush=True)
flow.serve()
"""


def test_a_worker_that_dies_in_a_task_leaves_the_finished_ones() -> None:
    """Another worker begins the task anew, under the same id, and no other one."""
    with dev(flags=["--worker-beat", "100ms", "--worker-lease", "400ms"]) as server:

        def start(how: str) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [sys.executable, "-c", DYING, how],
                env=os.environ | {"GRAPHD_SERVER": server.address},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

        @entrypoint(server=server.address, name="func-dying", worker=False)
        def flow(x: int) -> Any:
            raise AssertionError("a client runs no code of its entrypoint")

        first, results = start("dies"), []
        assert first.stdout is not None and first.stdout.readline() == "serves\n"
        call = threading.Thread(target=lambda: results.append(flow.invoke(1, config("func-dying-1"))))
        call.start()
        try:
            assert first.stdout.readline() == "prepare\n"
            paying = first.stdout.readline()
            first.kill()
            second = start("lives")
            call.join()
        finally:
            first.kill()
            first.communicate()
        second.kill()
        said, _ = second.communicate()
        assert results == [4]
        # The worker of the entrypoint begins beside the main thread, so either line may be the first.
        assert sorted(said.splitlines()) == sorted(["serves", paying.strip()])


def test_a_server_that_is_killed_keeps_finished_tasks(tmp_path: Path) -> None:
    ran: list[str] = []

    @task
    def work(x: int) -> int:
        ran.append("work")
        return x + 1

    def build(server: DevServer) -> Any:
        @entrypoint(kept(server), name="func-server")
        def flow(x: int) -> Any:
            return [work(x).result(), interrupt("go on?")]

        return flow

    first = DevServer(store=f"sqlite:{tmp_path / 'threads.db'}")
    try:
        flow = build(first)
        assert [q.value for q in flow.invoke(1, config("func-server-1"))["__interrupt__"]] == ["go on?"]
        first.process.kill()
        first.process.wait()
        with contextlib.closing(DevServer(store=f"sqlite:{tmp_path / 'threads.db'}", port=first.port)):
            assert flow.invoke(Command(resume="yes"), config("func-server-1")) == [2, "yes"]
            flow.detach()
    finally:
        first.close()
    assert ran == ["work"]
