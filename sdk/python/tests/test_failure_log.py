"""The tracebacks of failed nodes are in the log of the worker."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any, TypedDict

import pytest

from graphd import END, START, Client, StateGraph
from graphd.dev import DevServer
from graphd.types import RetryPolicy
from graphd.worker.background_loop import find_loop


class State(TypedDict, total=False):
    total: int


def divide(state: State) -> State:
    secret_of_the_worker = 0
    return {"total": 1 // secret_of_the_worker}


async def adivide(state: State) -> State:
    await asyncio.sleep(0)
    return divide(state)


def build(node: Any, **options: Any) -> StateGraph[Any]:
    return StateGraph(State).add_node("divide", node, **options).add_edge(START, "divide").add_edge("divide", END)


async def pass_turns() -> None:
    """Lets what a loop has to do be done: the end of a task, and what follows it."""
    for _ in range(5):
        await asyncio.sleep(0)


def failures(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [one for one in caplog.records if one.name == "graphd.worker" and one.exc_info]


@pytest.mark.parametrize("node", [divide, adivide])
def test_a_failed_node_is_in_the_log_of_its_worker(
    server: DevServer, caplog: pytest.LogCaptureFixture, node: Any
) -> None:
    name = f"failure-{node.__name__}"
    graph = build(node, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=ZeroDivisionError))
    worker = graph.compile(server=server.address, name=name)
    client = Client(server.address)  # another program, as far as the worker can know
    with caplog.at_level(logging.INFO, logger="graphd.worker"):
        run = client.runs.start(name, {"total": 1}, thread_id=f"thread-{name}")
        with pytest.raises(ZeroDivisionError) as raised:
            client.runs.wait(run.thread_id, run.run_id, timeout=60)
    first, second = failures(caplog)
    assert 'return {"total": 1 // secret_of_the_worker}' in caplog.text, "the whole traceback"
    for attempt, record in enumerate((first, second), 1):
        assert record.levelno == logging.ERROR
        assert record.getMessage() == (
            f"graph '{name}', node 'divide' failed with ZeroDivisionError: "
            f"thread thread-{name}, run {run.run_id}, attempt {attempt}"
        )
        fields = {key: vars(record)[key] for key in ("graph", "node", "thread_id", "run_id", "attempt")}
        expected = {"graph": name, "node": "divide", "thread_id": run.thread_id, "run_id": run.run_id}
        assert fields == expected | {"attempt": attempt}
    assert str(raised.value) == "integer division or modulo by zero", "what the caller is told stays short"
    worker.detach()


def test_a_caller_in_this_process_is_raised_the_exception(server: DevServer, caplog: pytest.LogCaptureFixture) -> None:
    graph = build(divide).compile(server=server.address, name="failure-local")
    with caplog.at_level(logging.INFO, logger="graphd.worker"), pytest.raises(ZeroDivisionError):
        graph.invoke({"total": 1}, {"configurable": {"thread_id": "failure-local"}})
    (record,) = failures(caplog)
    assert record.levelno == logging.INFO, "an error would be shown twice"


def test_a_state_that_does_not_fit_is_in_the_log(server: DevServer, caplog: pytest.LogCaptureFixture) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Strict(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        total: int

    def node(state: Strict) -> dict[str, Any]:
        raise AssertionError("not reached")

    graph = StateGraph(Strict).add_node("strict", node).add_edge(START, "strict")
    graph.compile(server=server.address, name="failure-strict")
    client = Client(server.address)
    with caplog.at_level(logging.INFO, logger="graphd.worker"):
        run = client.runs.start("failure-strict", {"total": "many"}, thread_id="failure-strict")
        with pytest.raises(Exception, match="total"):
            client.runs.wait(run.thread_id, run.run_id, timeout=60)
    assert [vars(one)["node"] for one in failures(caplog)] == ["strict"]


def test_a_stopped_coroutine_has_not_failed(server: DevServer, caplog: pytest.LogCaptureFixture) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def wait(state: State) -> State:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    worker = build(wait).compile(server=server.address, name="failure-stopped")
    client = Client(server.address)
    with caplog.at_level(logging.INFO, logger="graphd.worker"):
        client.runs.start("failure-stopped", {"total": 1}, thread_id="failure-stopped")
        assert begun.wait(60)
        client.runs.cancel("failure-stopped", wait=True)
        assert ended.wait(60)
        asyncio.run_coroutine_threadsafe(pass_turns(), find_loop(None)).result(60)  # its result is made
    worker.detach()
    assert failures(caplog) == []
