"""The loop of async nodes whose caller has none."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any

import pytest

from graphd import START, StateGraph
from graphd.dev import DevServer
from graphd.worker import background_loop
from graphd.worker.background_loop import find_loop
from tests.test_worker import State


async def answer() -> int:
    return 7


def ask_loop() -> int:
    return asyncio.run_coroutine_threadsafe(answer(), find_loop(None)).result(60)


def test_nodes_share_a_loop() -> None:
    assert ask_loop() == 7
    assert find_loop(None) is find_loop(None)


def test_a_process_that_was_forked_has_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Thread(target=lambda: None)  # as all threads of the process before the fork
    ended.start()
    ended.join()
    monkeypatch.setattr(background_loop, "_loops", [(asyncio.new_event_loop(), ended)])
    assert ask_loop() == 7


def test_an_async_node_may_make_plain_calls(server: DevServer) -> None:
    graphs = list[Any]()

    async def node(state: State) -> dict[str, Any]:
        level = len(state["log"])
        below = graphs[level].invoke({"log": [*state["log"], "x"]})["log"] if level < 3 else []
        return {"log": [*below, level]}

    for level in range(4):
        builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
        graphs.append(builder.compile(server=server.address, name=f"plain-call-{level}"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(graphs[3].invoke, {"log": []}) for _ in range(2)]
        assert all(call.result(60)["log"][-1] == 0 for call in calls)
    assert asyncio.run(graphs[3].ainvoke({"log": []}))["log"][-1] == 0
