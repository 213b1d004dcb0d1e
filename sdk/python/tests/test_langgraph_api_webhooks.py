"""Webhooks of runs, as clients of LangGraph Server ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphd.dev import DevServer
from tests.langgraph_api.flows import new_thread
from tests.langgraph_api.graphs import build_graphs
from tests.langgraph_api.notes import http_status
from tests.langgraph_api.receiver import Receiver
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[str]:
    flags = ["--langgraph", "127.0.0.1:0", "--webhook-allow", receiver.address]
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=flags) as server,
    ):
        graphs = build_graphs(server.address)
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def client(url: str, receiver: Receiver) -> AsyncIterator[LangGraphClient]:
    receiver.told.clear()
    async with get_client(url=url, api_key=None) as made:
        yield made


async def test_each_stop_of_a_run_is_told(client: LangGraphClient, receiver: Receiver) -> None:
    thread = await new_thread(client)
    hook = f"http://{receiver.address}/hook?x=1"
    await client.runs.wait(thread, "review", input={"request": "r"}, metadata={"m": 1}, webhook=hook)
    asked = (await receiver.wait(lambda told: len(told) == 1))[0]
    assert (asked["path"], asked["thread_id"], asked["status"]) == ("/hook?x=1", thread, "success")
    assert asked["metadata"]["m"] == 1
    assert asked["values"] == (await client.threads.get_state(thread))["values"]
    assert asked["id"] == asked["run_id"]

    answered = await client.runs.create(thread, "review", command={"resume": "yes"}, webhook=hook)
    ended = (await receiver.wait(lambda told: len(told) == 2))[1]
    assert ended["run_id"] == answered["run_id"] != asked["run_id"]
    assert ended["values"]["log"][-1] == "execute"
    assert {"run_started_at", "run_ended_at", "webhook_sent_at", "assistant_id", "kwargs"} <= set(ended)

    parts = [p async for p in client.runs.stream(thread, "review", input={"request": "s"}, webhook=hook)]
    assert parts
    await receiver.wait(lambda told: len(told) == 3)
    await client.runs.wait(thread, "review", command={"resume": "no"})
    await asyncio.sleep(0.3)
    assert len(receiver.told) == 3, "an answer without a webhook tells none"


async def test_runs_without_a_thread_and_those_that_fail_are_told(client: LangGraphClient, receiver: Receiver) -> None:
    hook = f"http://{receiver.address}/"
    values: Any = await client.runs.wait(None, "chain", input={"n": 1}, webhook=hook)
    told = (await receiver.wait(lambda told: len(told) == 1))[0]
    assert told["values"] == values
    thread = await new_thread(client)
    await client.runs.create(thread, "fail", input={"request": "r"}, webhook=hook)
    failed = (await receiver.wait(lambda told: len(told) == 2))[1]
    assert failed["status"] == "error"
    assert failed["error"]["message"]


async def test_a_run_that_ends_with_its_connection_is_told(client: LangGraphClient, receiver: Receiver) -> None:
    hook = f"http://{receiver.address}/"
    thread = await new_thread(client)
    for of in (thread, None):
        await client.runs.wait(of, "chain", input={"n": 1}, webhook=hook, on_disconnect="cancel")
    await receiver.wait(lambda told: len(told) == 2)


async def test_a_wait_that_is_left_tells_of_the_run(client: LangGraphClient, receiver: Receiver) -> None:
    thread = await new_thread(client)
    body = {
        "assistant_id": "slow",
        "input": {"steps": 4, "seconds": 0.3},
        "on_disconnect": "continue",
        "webhook": f"http://{receiver.address}/",
    }
    with pytest.raises(httpx.ReadTimeout):
        await client.http.client.post(f"/threads/{thread}/runs/wait", json=body, timeout=0.4)
    told = await receiver.wait(lambda told: len(told) == 1)
    assert told[0]["status"] == "success"


async def test_an_address_that_is_down_for_a_while_is_told(client: LangGraphClient, receiver: Receiver) -> None:
    receiver.refusals = 1
    await client.runs.wait(None, "chain", input={"n": 1}, webhook=f"http://{receiver.address}/")
    await receiver.wait(lambda told: len(told) == 1)


@pytest.mark.parametrize(
    "webhook",
    [
        "/hook",
        "https://example.com/" + "a" * 2048,
        "http://127.0.0.1:1/",
        "http://10.0.0.1/",
        "http://169.254.169.254/x",
        "ftp://a/",
        "https://u:p@a/",
        "x",
    ],
)
async def test_addresses_that_are_not_allowed_are_refused(client: LangGraphClient, webhook: str) -> None:
    thread = await new_thread(client)
    assert await http_status(client.runs.create(thread, "chain", input={"n": 1}, webhook=webhook)) == 422
    assert await client.runs.list(thread) == []


async def test_a_webhook_too_many_begins_no_run(tmp_path: Path, receiver: Receiver) -> None:
    hook = f"http://{receiver.address}/"
    flags = ["--langgraph", "127.0.0.1:0", "--webhook-allow", receiver.address, "--run-webhooks", "1"]
    with DevServer(store=f"sqlite:{tmp_path}/graphd.db", flags=flags) as server:
        graphs = build_graphs(server.address)
        async with get_client(url=find_url(server), api_key=None) as client:
            receiver.refusals = 1000
            first, second = await new_thread(client), await new_thread(client)
            await client.runs.wait(first, "review", input={"request": "r"}, webhook=hook)
            assert await http_status(client.runs.create(second, "chain", input={"n": 1}, webhook=hook)) == 429
            for path in (f"/threads/{second}/runs/wait", f"/threads/{second}/runs/stream", "/runs", "/runs/stream"):
                refused = await client.http.client.post(
                    path, json={"assistant_id": "chain", "input": {"n": 1}, "webhook": hook}
                )
                assert refused.status_code == 429, path
            answer = {"assistant_id": "review", "command": {"resume": "yes"}, "webhook": hook}
            assert (await client.http.client.post(f"/threads/{first}/runs", json=answer)).status_code == 429
            assert await client.runs.list(second) == []
            assert len(await client.threads.search()) == 2, "a run without a thread leaves none"
            assert (await client.threads.get(first))["status"] == "interrupted"
        for graph in graphs:
            graph.detach()
    receiver.refusals = 0
    receiver.told.clear()


async def test_a_server_that_is_killed_tells_later(tmp_path: Path, receiver: Receiver) -> None:
    receiver.told.clear()
    hook = f"http://{receiver.address}/"
    flags = ["--langgraph", "127.0.0.1:0", "--webhook-allow", receiver.address]
    store = f"sqlite:{tmp_path}/graphd.db"
    threads = []
    with DevServer(store=store, flags=flags) as server:
        graphs = build_graphs(server.address)
        async with get_client(url=find_url(server), api_key=None) as client:
            receiver.refusals = 1000
            for _ in range(5):
                thread = await new_thread(client)
                threads.append(thread)
                await client.runs.create(thread, "review", input={"request": "r"}, webhook=hook)
        server.process.kill()
        server.process.wait()
        for graph in graphs:
            graph.detach()
    receiver.refusals = 0
    with DevServer(store=store, flags=flags) as server:
        graphs = build_graphs(server.address)
        told = await receiver.wait(lambda told: {t["thread_id"] for t in told} == set(threads))
        for graph in graphs:
            graph.detach()
    assert all(t["status"] == "success" for t in told)
