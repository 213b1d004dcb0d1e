"""A worker and its server lose each other."""

from __future__ import annotations

import asyncio
import operator
import threading
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph, get_config, get_stream_writer, interrupt
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.dev import DevServer, dev
from graphd.errors import RemoteNodeError
from graphd.runtime import Runtime
from graphd.transport.server import call_unary, server_at
from graphd.types import Command, RetryPolicy
from graphd.worker.tasks import SessionTasks


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def one_node(node: Any, server: DevServer, name: str, **options: Any) -> Any:
    builder = StateGraph(State).add_node("node", node, **options).add_edge(START, "node")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize("key", ["", "secret"])
def test_a_result_survives_a_restart_of_the_server(tmp_path: Path, key: str) -> None:
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def node(state: State) -> dict[str, Any]:
        runs.append(1)
        begun.set()
        assert go_on.wait(60)
        return {"log": ["done"]}

    store = f"sqlite:{tmp_path / 'graphd.db'}"
    flags = ["--worker-key", key] if key else []
    first = dev(store=store, flags=flags)
    graph = one_node(node, first, "restart")
    results: list[Any] = []

    def run() -> None:
        results.append(graph.invoke({"log": []}, config("restart-1")))

    caller = threading.Thread(target=run)
    caller.start()
    assert begun.wait(60)
    first.process.kill()
    first.process.wait()
    second = dev(store=store, flags=flags, port=first.port)
    try:
        go_on.set()
        caller.join(60)
        stubs = server_at(second.address).stubs.graphs
        wait_until(lambda: call_unary(stubs.WaitRun, gs.WaitRunRequest(thread_id="restart-1")).output.json)
        assert graph.get_state(config("restart-1")).values == {"log": ["done"]}
        assert len(runs) == 1, "the result is delivered late"
        caller.join(60)
        assert results == [{"log": ["done"]}], "the call went on where its connection broke"
    finally:
        graph.detach()
        second.close()
        first.close()


def test_another_process_sees_type_and_text_of_a_failure(server: DevServer) -> None:
    class Strange(Exception):
        pass

    def node(state: State) -> dict[str, Any]:
        raise Strange("how odd")

    graph = one_node(node, server, "strange")
    with pytest.raises(Strange, match="how odd"):
        graph.invoke({"log": []}, config("strange-1"))
    (task,) = graph.get_state(config("strange-1")).tasks
    assert isinstance(task.error, RemoteNodeError)
    assert repr(task.error) == "Strange('how odd')"


async def test_async_nodes_run_on_the_loop_of_the_caller(server: DevServer) -> None:
    here = asyncio.get_running_loop()
    gate = asyncio.Event()

    async def node(state: State, runtime: Runtime) -> dict[str, Any]:
        gate.set()
        return {"log": [str(asyncio.get_running_loop() is here), str(runtime.context)]}

    graph = one_node(node, server, "loop")
    assert await graph.ainvoke({"log": []}, config("loop-1"), context={"user": "ann"}) == {
        "log": ["True", "{'user': 'ann'}"]
    }
    assert gate.is_set()


def test_nodes_see_the_config_and_write_to_the_stream(server: DevServer) -> None:
    def node(state: State, config: Any) -> dict[str, Any]:
        assert get_config() is config
        get_stream_writer()({"half": True})
        return {"log": [config["configurable"]["tenant"], config["metadata"]["langgraph_node"]]}

    graph = one_node(node, server, "config")
    given = {"configurable": {"thread_id": "config-1", "tenant": "acme"}}
    items = list(graph.stream({"log": []}, given, stream_mode=["custom", "values"]))
    assert items[1:] == [("custom", {"half": True}), ("values", {"log": ["acme", "node"]})]


def test_output_is_muted_while_replaying(server: DevServer) -> None:
    def node(state: State) -> dict[str, Any]:
        get_stream_writer()("before")
        answer = interrupt("go?")
        get_stream_writer()("after")
        return {"log": [answer]}

    graph = one_node(node, server, "muted")
    assert list(graph.stream({"log": []}, config("muted-1"), stream_mode="custom")) == ["before"]
    assert list(graph.stream(Command(resume="yes"), config("muted-1"), stream_mode="custom")) == ["after"]


def test_the_first_policy_that_matches_is_used(server: DevServer) -> None:
    tries: list[str] = []

    def node(state: State) -> dict[str, Any]:
        tries.append("x")
        raise KeyError("k") if len(tries) < 3 else ZeroDivisionError("z")

    policies = [
        RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False, retry_on=ZeroDivisionError),
        RetryPolicy(max_attempts=4, initial_interval=0.01, jitter=False, retry_on=LookupError),
    ]
    graph = one_node(node, server, "policies", retry_policy=policies)
    with pytest.raises(ZeroDivisionError):
        graph.invoke({"log": []}, config("policies-1"))
    assert len(tries) == 3


def test_a_worker_goes_on_after_a_message_that_it_can_not_handle(
    server: DevServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin, broken = SessionTasks.begin_task, [RuntimeError("no thread can be started")]

    def begin_task(tasks: SessionTasks, assignment: Any) -> None:
        if broken:
            raise broken.pop()
        begin(tasks, assignment)

    monkeypatch.setattr(SessionTasks, "begin_task", begin_task)
    graph = one_node(lambda state: {"log": ["done"]}, server, "unhandled")
    results: list[Any] = []
    threading.Thread(
        target=lambda: results.append(graph.invoke({"log": []}, config("unhandled-1"))), daemon=True
    ).start()
    wait_until(lambda: results)
    assert results == [{"log": ["done"]}]
    assert "no thread can be started" in caplog.text
