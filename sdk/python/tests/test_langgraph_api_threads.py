"""The stream of a thread in the API of LangGraph Server, which shows its runs one after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import ThreadStreamMode

from graphd.dev import DevServer
from tests.langgraph_api.flows import new_thread
from tests.langgraph_api.graphs import build_graphs
from tests.langgraph_api.server import find_url

pytestmark = pytest.mark.usefixtures("one_authority")

BEGINNING = "-"
RUN: list[ThreadStreamMode] = ["run_modes"]
Part = tuple[str, Any]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = f"sqlite:{tmp_path_factory.mktemp('store')}/graphd.db"
    with DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server:
        graphs = build_graphs(server.address)
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made


async def read(
    client: LangGraphClient, thread: str, count: int, after: str, modes: list[ThreadStreamMode] = RUN
) -> list[Any]:
    """The parts of a stream of a thread after an event."""
    parts: list[Any] = []
    async for part in await client.threads.join_stream(thread, last_event_id=after, stream_mode=modes):
        parts.append(part)
        if len(parts) == count:
            break
    return parts


def show(parts: list[Any]) -> list[Part]:
    return [(part.event, part.data) for part in parts]


def begin(run: str) -> Part:
    return ("metadata", {"run_id": run, "attempt": 1})


def end(run: str) -> Part:
    return ("metadata", {"run_id": run, "status": "run_done"})


async def play(client: LangGraphClient, thread: str, graph: str, **asked: Any) -> str:
    """Runs a graph to its next stop, and has it show values and updates; returns the id of the run."""
    run = await client.runs.create(thread, graph, stream_mode=["values", "updates"], **asked)
    await client.runs.join(thread, run["run_id"])
    return run["run_id"]


async def play_review(client: LangGraphClient) -> tuple[str, list[str]]:
    """A thread with a run that asks, one that answers, and a further one."""
    thread = await new_thread(client)
    asks = await play(client, thread, "review", input={"request": "r1"})
    answers = await play(client, thread, "review", command={"resume": "yes"})
    asks_again = await play(client, thread, "review", input={"request": "r2"})
    return thread, [asks, answers, asks_again]


LENGTH = 21  # of the stream of such a thread


async def test_each_run_shows_what_it_was_asked_to_show(client: LangGraphClient) -> None:
    thread, (asks, answers, asks_again) = await play_review(client)
    seen = show(await read(client, thread, LENGTH, BEGINNING))
    question = seen[4][1]["__interrupt__"]
    assert question[0]["value"] == {"question": "approve?", "request": "r1"}
    first: Any = {"request": "r1", "log": ["analyze r1"]}
    decided = first | {"decision": "yes", "log": ["analyze r1", "human"]}
    assert seen[:14] == [
        begin(asks),
        ("values", {"request": "r1", "log": []}),
        ("updates", {"analyze": {"log": ["analyze r1"]}}),
        ("values", first),
        ("updates", {"__interrupt__": question}),
        ("values", first | {"__interrupt__": question}),
        end(asks),
        begin(answers),
        ("values", first),
        ("updates", {"human": {"decision": "yes", "log": ["human"]}}),
        ("values", decided),
        ("updates", {"execute": {"result": "done yes", "log": ["execute"]}}),
        ("values", decided | {"result": "done yes", "log": ["analyze r1", "human", "execute"]}),
        end(answers),
    ]
    assert (seen[14], seen[-1]) == (begin(asks_again), end(asks_again))


async def test_a_stream_goes_on_after_each_of_its_events(client: LangGraphClient) -> None:
    thread, _ = await play_review(client)
    modes: list[ThreadStreamMode] = ["run_modes", "state_update"]
    count = LENGTH + 7
    parts = await read(client, thread, count, BEGINNING, modes)
    assert len({part.id for part in parts}) == count
    for number, part in enumerate(parts[:-1], 1):
        assert await read(client, thread, count - number, part.id, modes) == parts[number:]


async def test_begin_and_end_of_runs(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    given = {"request": "r1"}
    runs = [await play(client, thread, "review", input=given)]
    runs.append(await play(client, thread, "review", command={"resume": "yes"}))
    seen = show(await read(client, thread, 4, BEGINNING, ["lifecycle"]))
    assert seen == [begin(runs[0]), end(runs[0]), begin(runs[1]), end(runs[1])]


async def test_a_failure_has_an_error(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    run = await play(client, thread, "fail", input={"x": 1})
    error = ("error", {"error": "ValueError", "message": "boom 1"})
    assert show(await read(client, thread, 3, BEGINNING, ["lifecycle"])) == [begin(run), error, end(run)]
    assert show(await read(client, thread, 6, BEGINNING))[-2:] == [error, end(run)]


async def test_the_state_also_changes_by_hand(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await play(client, thread, "chain", input={"n": 0})
    done = await client.threads.get_state(thread)
    await client.threads.update_state(thread, {"n": 70})
    changed = await client.threads.get_state(thread)
    parts = await read(client, thread, 12, BEGINNING, ["state_update"])
    assert [part.event for part in parts] == ["state_update"] * 12
    assert [part.data["values"]["n"] for part in parts] == [*range(11), 70]
    assert [part.data["checkpoint"] for part in parts[-2:]] == [done["checkpoint"], changed["checkpoint"]]


class LateStream:
    """What comes on a thread from the moment on when it is made."""

    def __init__(self, url: str, thread: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=60)
        self._answer = self._http.stream("GET", f"/threads/{thread}/stream")

    async def __aenter__(self) -> LateStream:
        response = await self._answer.__aenter__()
        assert response.status_code == 200
        self._lines = response.aiter_lines()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._answer.__aexit__(*raised)
        await self._http.aclose()

    async def read_to(self, last: Part) -> list[Part]:
        seen: list[Part] = []
        name = ""
        async for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                seen.append((name, json.loads(line.removeprefix("data: "))))
                if seen[-1] == last:
                    return seen
        raise AssertionError(f"the stream has ended after {seen}")


async def test_a_late_stream_shows_what_comes_next(client: LangGraphClient, url: str) -> None:
    thread = await new_thread(client)
    await play(client, thread, "review", input={"request": "r1"})
    async with LateStream(url, thread) as stream:
        run = await play(client, thread, "review", command={"resume": "yes"})
        seen = await stream.read_to(end(run))
    assert (seen[0], len(seen)) == (begin(run), 7)


async def test_an_early_stream_waits_for_its_thread(client: LangGraphClient, url: str) -> None:
    thread = "8a1f6a4e-54f1-4f0f-8c56-24f9c64f9f30"
    async with LateStream(url, thread) as stream:
        run = await play(client, thread, "chain", input={"n": 0}, if_not_exists="create")
        assert (await stream.read_to(end(run)))[0] == begin(run)


async def test_a_stream_that_joins_a_run_shows_the_rest_of_it(client: LangGraphClient, url: str) -> None:
    thread = await new_thread(client)
    given = {"steps": 1000, "seconds": 0.1}
    first = await client.runs.create(thread, "slow", input=given, stream_mode="updates")
    while not (await client.threads.get_state(thread))["values"].get("seen"):  # type: ignore[union-attr]
        await asyncio.sleep(0.01)
    async with LateStream(url, thread) as stream:
        queued = await client.runs.create(thread, "slow", input=given, multitask_strategy="enqueue")
        await client.runs.cancel(thread, queued["run_id"], wait=True)
        await client.runs.cancel(thread, first["run_id"], wait=True)
        seen = await stream.read_to(end(first["run_id"]))
    assert begin(first["run_id"]) not in seen
    assert [part for part in seen if part[0] not in ("updates", "error")] == [end(first["run_id"])]


@pytest.mark.parametrize(
    ("query", "header", "field"),
    [
        ({"stream_mode": "values"}, "", "stream_mode"),
        ({"stream_modes": '["lifecycle", "all"]'}, "", "stream_mode"),
        ({"stream_mode": "[1]"}, "", "stream_mode"),
        ({}, "nonsense", "Last-Event-ID"),
        ({}, "a-1-2-3", "Last-Event-ID"),
        ({}, "a-1-2-3-b", "Last-Event-ID"),
    ],
)
async def test_wrong_requests(url: str, query: dict[str, str], header: str, field: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        path = "/threads/8a1f6a4e-54f1-4f0f-8c56-24f9c64f9f31/stream"
        response = await http.get(path, params=query, headers={"Last-Event-ID": header} if header else {})
    assert (response.status_code, response.json()["field"]) == (422, field)


async def test_an_event_of_another_thread_is_refused(client: LangGraphClient, url: str) -> None:
    threads = [await new_thread(client), await new_thread(client)]
    for thread in threads:
        await play(client, thread, "chain", input={"n": 0})
    (part,) = await read(client, threads[0], 1, BEGINNING)
    async with httpx.AsyncClient(base_url=url) as http:
        response = await http.get(f"/threads/{threads[1]}/stream", headers={"Last-Event-ID": part.id})
    assert (response.status_code, response.json()["reason"]) == (410, "CURSOR_LOST")


@pytest.mark.filterwarnings("ignore:Request failed, attempting reconnect")
@pytest.mark.parametrize("end_server", ["terminate", "kill"])
async def test_a_stream_outlives_its_server(tmp_path: Path, end_server: str) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"])
    graphs = build_graphs(server.address)
    url = find_url(server)
    seen: list[int] = []
    try:
        async with get_client(url=url, api_key=None) as client:
            thread = await new_thread(client)
            run = await client.runs.create(thread, "slow", input={"steps": 10, "seconds": 0.05}, stream_mode="updates")
            async for part in await client.threads.join_stream(thread, last_event_id=BEGINNING):
                if (part.event, part.data) == end(run["run_id"]):
                    break
                if part.event == "updates":
                    seen += part.data["tick"]["seen"]  # type: ignore[index]
                if len(seen) == 5 and server.process.poll() is None:
                    getattr(server.process, end_server)()
                    await asyncio.to_thread(server.process.wait)
                    flags = ["--langgraph", url.removeprefix("http://")]
                    server = await asyncio.to_thread(DevServer, store=store, flags=flags, port=server.port)
    finally:
        for graph in graphs:
            graph.detach()
        server.close()
    assert seen == list(range(10))
