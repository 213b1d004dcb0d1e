"""Programs for LangGraph Server run on graphd by changing a URL."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import httpx
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphd.dev import DevServer
from tests.langgraph_api.flows import FLOWS, Flow, new_thread, settle
from tests.langgraph_api.graphs import build_graphs, failures
from tests.langgraph_api.notes import Notes, http_status
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")


class Outer(TypedDict):
    """The state of a graph of LangGraph that has a graph of graphd as a node."""

    n: int


EXPECTED = Path(__file__).parent / "langgraph_api" / "expected"


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the graphs of the programs."""
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server,
    ):
        graphs = build_graphs(server.address)
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
async def test_programs_see_what_langgraph_server_shows(flow: Flow, client: LangGraphClient, url: str) -> None:
    notes = Notes()
    await flow(client, url, notes)
    seen = json.loads(json.dumps(notes.rows))
    expected = json.loads((EXPECTED / f"{flow.__name__}.json").read_text())
    assert [row[0] for row in seen] == [row[0] for row in expected]
    for (what, got), (_, want) in zip(seen, expected, strict=True):
        assert got == want, what


async def test_one_of_several_answers_at_once_counts(client: LangGraphClient) -> None:
    for answers in (["yes"] * 4, ["a", "b", "c", "d"]):
        thread = await new_thread(client)
        await client.runs.wait(thread, "review", input={"request": "r"})
        calls = [http_status(client.runs.wait(thread, "review", command={"resume": a})) for a in answers]
        assert sorted(await asyncio.gather(*calls)) == [200, 409, 409, 409]
        values = (await client.threads.get_state(thread))["values"]
        assert values["log"] == ["analyze r", "human", "execute"]  # type: ignore[call-overload]
        assert await http_status(client.runs.create(thread, "review", command={"resume": answers[0]})) == 409


async def test_a_run_that_waits_shows_its_output_so_far(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    waited: Any = await client.runs.wait(thread, "half", input={"topic": "t"})
    joined: Any = await client.runs.join(thread, (await client.runs.list(thread))[0]["run_id"])
    assert joined == waited
    (asked,) = waited.pop("__interrupt__")
    assert asked["value"] == "go on?"
    assert waited == {"topic": "t", "quick": "done"}


@pytest.mark.parametrize("goes_on_first", [False, True])
async def test_questions_beside_a_failed_node_are_answered(client: LangGraphClient, goes_on_first: bool) -> None:
    thread, topic = await new_thread(client), uuid.uuid4().hex
    due = failures[topic] = threading.Event()
    run = await client.runs.create(thread, "halting", input={"topic": topic})
    while not (await client.threads.get(thread))["interrupts"]:
        await asyncio.sleep(0.02)
    due.set()
    failed: Any = await client.runs.join(thread, run["run_id"])
    assert "broken" in failed["__error__"]["message"]
    if goes_on_first:
        waited: Any = await client.runs.wait(thread, "halting", input=None)
        assert [q["value"] for q in waited["__interrupt__"]] == ["go on?"]
    answered: Any = await client.runs.wait(thread, "halting", command={"resume": "yes"})
    assert answered == {"topic": topic, "quick": "done", "answer": "yes"}


async def test_a_remote_graph_goes_on_from_a_breakpoint(client: LangGraphClient, url: str) -> None:
    thread = await new_thread(client)
    graph, config = RemoteGraph("chain", url=url), RunnableConfig(configurable={"thread_id": thread})
    assert await graph.ainvoke({"n": 0}, config, interrupt_before=["n3"]) == {"n": 3}
    assert await graph.ainvoke(None, config) == {"n": 10}


async def test_going_on_where_a_question_waits_shows_it(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    asked = await client.runs.wait(thread, "review", input={"request": "r"})
    assert await client.runs.wait(thread, "review", input=None, if_not_exists="create") == asked


async def test_a_node_is_done_without_a_value(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "review", input={"request": "r"})
    await client.threads.update_state(thread, None, as_node="human")
    assert (await client.threads.get_state(thread))["next"] == ["execute"]


@pytest.mark.parametrize("strict", [None, True])
async def test_answers_that_fit_no_question_are_refused(client: LangGraphClient, strict: bool | None) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "twins", input={"topic": "x"})

    async def answer(graph: str, value: Any) -> int:
        command: Any = {"resume": value}
        return await http_status(client.runs.create(thread, graph, command=command, strict_resume=strict))

    assert await answer("twins", "both") == 422
    assert await answer("twins", {uuid.uuid4().hex: 1}) == 422
    assert await answer("review", 1) == 422
    assert (await client.threads.get(thread))["status"] == "interrupted"


async def test_answers_to_named_questions_that_are_not_open_are_refused(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]

    async def answer(question: str, value: str) -> int:
        return await http_status(client.runs.wait(thread, "twins", command={"resume": {question: value}}))

    asked: Any = await client.runs.wait(thread, "twins", input={"topic": "t"})
    first, second = (q["id"] for q in asked["__interrupt__"])
    assert await answer(first, "yes") == 200
    assert await answer(first, "no") == 409
    assert await answer("f" * 32, "yes") == 422
    assert await answer(second, "yes") == 200
    assert await answer(second, "no") == 409
    assert (await client.threads.get_state(thread))["values"]["answers"] == ["a=yes", "b=yes", "join"]  # type: ignore[call-overload]


async def test_a_command_ends_a_thread_that_waits(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "review", input={"request": "r"})
    values = await client.runs.wait(thread, "review", command={"goto": "__end__"})
    assert "__interrupt__" not in values
    found = await client.threads.get(thread)
    assert (found["status"], found["interrupts"]) == ("idle", {})


async def test_nothing_runs_where_a_person_is_asked(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    asked = await client.runs.wait(thread, "review", input={"request": "r"})
    assert await client.runs.wait(thread, "review", input=None) == asked
    events = [part async for part in client.runs.stream(thread, "review", input=None)]
    assert [part.event for part in events] == ["metadata", "values"]
    assert events[1].data == asked


async def test_breakpoints(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    values: Any = await client.runs.wait(thread, "chain", input={"n": 0}, interrupt_before=["n3", "n7"])
    assert values == {"n": 3}
    assert (await client.threads.get(thread))["interrupts"] == {}
    assert await client.runs.wait(thread, "chain", input=None, interrupt_before=["n7"]) == {"n": 7}
    assert await client.runs.wait(thread, "chain", input=None) == {"n": 10}
    assert await client.runs.wait(thread, "chain", input=None) == {"n": 10}, "nothing is left"


async def test_the_history_has_the_questions_that_were_asked(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    waited: Any = await client.runs.wait(thread, "twins", input={"topic": "t"})
    asked = waited["__interrupt__"]
    await client.runs.wait(thread, "twins", command={"resume": {asked[0]["id"]: 1}})
    (newest, *_) = await client.threads.get_history(thread)
    assert newest["interrupts"] == asked[1:], "who answers sees what is open"
    await client.runs.wait(thread, "twins", command={"resume": {asked[1]["id"]: 2}})
    history: Any = await client.threads.get_history(thread)
    assert [s["interrupts"] for s in history] == [[], [], asked, []]
    assert [task["interrupts"] for task in history[2]["tasks"]] == [asked[:1], asked[1:]]
    at = await client.threads.get_state(thread, checkpoint=history[2]["checkpoint"])
    assert (at["interrupts"], at["tasks"]) == (asked, history[2]["tasks"])
    assert (await client.threads.get_state(thread))["interrupts"] == []


async def test_runs_keep_their_ids_over_later_answers(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    first = await client.runs.create(
        thread, "review", input={"request": "r"}, stream_mode="updates", metadata={"why": {"a": [1]}}
    )
    await settle(client, thread, first["run_id"])
    second = await client.runs.create(thread, "review", command={"resume": "ok"}, stream_mode="updates")
    await settle(client, thread, second["run_id"])
    assert [run["run_id"] for run in await client.runs.list(thread)] == [second["run_id"], first["run_id"]]
    assert (await client.runs.get(thread, first["run_id"]))["metadata"]["why"] == {"a": [1]}
    shown = []
    for run in (first, second):
        replay = client.runs.join_stream(thread, run["run_id"], last_event_id="-1")
        shown.append([key async for part in replay if part.event == "updates" for key in part.data])
    assert shown == [["analyze", "__interrupt__"], ["human", "execute"]]


async def test_a_stream_goes_on_after_each_of_its_events(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    modes: Any = ["values", "updates", "messages-tuple", "tasks"]
    given = {"messages": [{"role": "user", "content": "hi"}]}
    run = await client.runs.create(thread, "agent", input=given, stream_mode=modes)
    await settle(client, thread, run["run_id"])
    whole = [p async for p in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
    assert whole[0].event == "metadata"
    for at in range(1, len(whole)):
        rest = [p async for p in client.runs.join_stream(thread, run["run_id"], last_event_id=whole[at].id)]
        assert rest == whole[at + 1 :]


async def test_cancel(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "slow", input={"steps": 1000, "seconds": 0.05})
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"


async def test_a_run_begins_later(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    now: Any = {"steps": 1, "seconds": 0}
    late = await client.runs.create(thread, "slow", input={"steps": 2, "seconds": 0}, after_seconds=1)
    never = await client.runs.create(thread, "slow", input=now, after_seconds=3600)
    assert [late["status"], never["status"]] == ["pending", "pending"]
    assert (await client.threads.get(thread))["status"] == "idle"
    assert (await client.runs.wait(thread, "slow", input=now))["seen"] == [0]
    assert (await client.runs.join(thread, late["run_id"]))["seen"] == [0, 1]  # type: ignore[call-overload]
    await client.runs.cancel(thread, never["run_id"])
    assert [run["status"] for run in await client.runs.list(thread)] == ["success", "interrupted", "success"]
    assert (await client.runs.wait(None, "slow", input=now, after_seconds=1))["seen"] == [0]  # type: ignore[call-overload]


async def test_a_run_that_is_rolled_back_is_gone(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "slow", input={"steps": 1, "seconds": 0})
    before = await client.threads.get_state(thread)
    run = await client.runs.create(thread, "slow", input={"steps": 1000, "seconds": 0.05})
    await client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
    assert await http_status(client.runs.get(thread, run["run_id"])) == 404
    assert len(await client.runs.list(thread)) == 1
    run = await client.runs.create(thread, "slow", input={"steps": 1000, "seconds": 0.05})
    instead = {"steps": 2, "seconds": 0.0}
    await client.runs.wait(thread, "slow", input=instead, multitask_strategy="rollback")
    assert await http_status(client.runs.get(thread, run["run_id"])) == 404
    assert (await client.threads.get_state(thread))["values"]["seen"] == [0, 1]  # type: ignore[call-overload]
    assert before["values"]["seen"] == [0]  # type: ignore[call-overload]


async def test_deleted_runs_are_gone(client: LangGraphClient, url: str) -> None:
    """What they have written stays, and so do the other runs of the thread."""
    thread = (await client.threads.create(metadata={"why": "x"}))["thread_id"]
    await client.runs.wait(thread, "review", input={"request": "r"})
    asked = (await client.runs.list(thread))[0]["run_id"]
    await client.runs.wait(thread, "review", command={"resume": "ok"})
    answered = (await client.runs.list(thread))[0]["run_id"]
    await client.runs.delete(thread, asked)
    await client.threads.update(thread, metadata={"n": 1})
    assert (await client.threads.get(thread))["metadata"].keys() == {"why", "n", "graph_id", "assistant_id"}
    assert [run["run_id"] for run in await client.runs.list(thread)] == [answered]
    assert await http_status(client.runs.get(thread, asked)) == 404
    assert await http_status(client.runs.join(thread, asked)) == 404
    assert await http_status(client.runs.delete(thread, asked)) == 404
    assert await http_status(client.runs.cancel_many(thread_id=thread, run_ids=[asked])) == 404
    assert (await client.threads.get_state(thread))["values"]["log"]  # type: ignore[call-overload]

    slow = await client.runs.create(thread, "review", input={"request": "again"}, interrupt_before=["analyze"])
    await settle(client, thread, slow["run_id"])
    async with httpx.AsyncClient(base_url=url) as http:
        gone = [http.delete(f"/threads/{thread}/runs/{run}") for run in (answered, slow["run_id"])]
        assert [answer.status_code for answer in await asyncio.gather(*gone)] == [204, 204]
    assert await client.runs.list(thread) == []


async def test_a_run_that_is_active_is_not_deleted(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    run = (await client.runs.create(thread, "slow", input={"steps": 1000, "seconds": 0.05}))["run_id"]
    assert await http_status(client.runs.delete(thread, run)) == 409
    await client.runs.cancel(thread, run, wait=True)
    await client.runs.delete(thread, run)
    assert await client.runs.list(thread) == []


async def test_batches(client: LangGraphClient) -> None:
    runs: Any = await client.runs.create_batch([{"assistant_id": "chain", "input": {"n": n}} for n in (1, 2)])  # type: ignore[typeddict-item]
    assert [await client.runs.join(run["thread_id"], run["run_id"]) for run in runs] == [{"n": 11}, {"n": 12}]
    thread = await new_thread(client)
    given = {"steps": 1000, "seconds": 0.05}
    slow = [(await client.runs.create(thread, "slow", input=given))["run_id"] for _ in range(2)]
    await client.runs.cancel_many(thread_id=thread, run_ids=slow)
    assert [await settle(client, thread, run) for run in slow] == ["interrupted", "interrupted"]
    gone = [await new_thread(client) for _ in range(2)]
    assert await client.threads.prune(gone) == {"pruned_count": 2}
    assert await http_status(client.threads.get(gone[0])) == 404


async def test_a_run_ends_with_its_client_if_wanted(client: LangGraphClient, url: str) -> None:
    for how in ("stream", "wait"):
        thread = await new_thread(client)
        body = {"assistant_id": "slow", "input": {"steps": 1000, "seconds": 0.05}, "on_disconnect": "cancel"}
        async with httpx.AsyncClient(base_url=url) as other:
            call = asyncio.create_task(other.post(f"/threads/{thread}/runs/{how}", json=body))
            while not (runs := await client.runs.list(thread)):
                await asyncio.sleep(0.01)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert await settle(client, thread, runs[0]["run_id"]) == "interrupted"


async def test_metadata_of_any_json_is_found(client: LangGraphClient) -> None:
    mark = uuid.uuid4().hex
    deep = {"mark": mark, "n": 1, "deep": {"a": [1, 2, {"b": "x"}]}, "none": None}
    thread = (await client.threads.create(metadata=deep))["thread_id"]
    await client.threads.create(metadata={"mark": mark, "n": "1", "deep": {"a": [1]}})
    assert (await client.threads.get(thread))["metadata"] == deep
    for part in ({"n": 1}, {"deep": {"a": [2]}}, {"deep": {"a": [{"b": "x"}]}}, {"none": None}):
        found = await client.threads.search(metadata={"mark": mark, **part})
        assert [t["thread_id"] for t in found] == [thread], part
        assert await client.threads.count(metadata={"mark": mark, **part}) == 1
    await client.threads.update(thread, metadata={"n": 2})
    assert (await client.threads.get(thread))["metadata"] == {**deep, "n": 2}


async def test_assistants_show_their_graphs(client: LangGraphClient) -> None:
    schemas = await client.assistants.get_schemas("review")
    assert sorted(schemas["state_schema"]["properties"]) == ["decision", "log", "request", "result"]  # type: ignore[index]
    assert schemas["context_schema"] is None  # type: ignore[typeddict-item]
    assert await client.assistants.get_subgraphs("review", recurse=True) == {}
    drawing = await client.assistants.get_graph("agent", xray=True)
    edges = {(edge["source"], edge["target"]) for edge in drawing["edges"]}
    assert {("__start__", "model"), ("model", "tools"), ("model", "__end__"), ("tools", "final")} <= edges


async def test_pages_of_threads(client: LangGraphClient) -> None:
    mark = uuid.uuid4().hex
    made = [(await client.threads.create(metadata={"mark": mark}))["thread_id"] for _ in range(7)]
    pages = [await client.threads.search(metadata={"mark": mark}, limit=3, offset=offset) for offset in (0, 3, 6)]
    assert [t["thread_id"] for page in pages for t in page] == made[::-1]
    newest = await client.threads.search(metadata={"mark": mark}, limit=1, sort_by="created_at", sort_order="desc")
    assert newest[0]["thread_id"] == made[-1]
    changed = await client.threads.search(limit=1, sort_by="updated_at", sort_order="desc")
    assert changed[0]["thread_id"] == made[-1]


async def test_threads_of_stateless_runs_are_deleted(client: LangGraphClient) -> None:
    seen: list[Any] = []
    parts = client.runs.stream(None, "chain", input={"n": 0}, on_run_created=seen.append)
    async for _ in parts:
        pass
    assert await http_status(client.threads.get(seen[0]["thread_id"])) == 404


async def test_a_remote_graph_is_a_node(client: LangGraphClient, url: str) -> None:
    builder = StateGraph(Outer)
    builder.add_node("count", RemoteGraph("chain", url=url))
    builder.add_edge(START, "count")
    graph = builder.compile()
    assert await graph.ainvoke({"n": 5}) == {"n": 15}
    updates = [update async for update in graph.astream({"n": 5}, stream_mode="updates")]
    assert updates == [{"count": {"n": 15}}]


@pytest.mark.filterwarnings("ignore:Request failed, attempting reconnect")
async def test_a_wait_goes_on_when_its_server_restarts(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"])
    graphs = build_graphs(server.address)
    url = find_url(server)
    try:
        async with get_client(url=url, api_key=None) as client:
            thread = await new_thread(client)
            given = {"steps": 20, "seconds": 0.05}
            wait = asyncio.create_task(client.runs.wait(thread, "slow", input=given))
            while (await client.threads.get(thread))["status"] != "busy":
                await asyncio.sleep(0.01)
            server.process.terminate()
            await asyncio.to_thread(server.process.wait)
            flags = ["--langgraph", url.removeprefix("http://")]
            server = await asyncio.to_thread(DevServer, store=store, flags=flags, port=server.port)
            assert (await wait)["seen"] == list(range(20))  # type: ignore[call-overload]
            assert len(await client.runs.list(thread)) == 1
    finally:
        for graph in graphs:
            graph.detach()
        server.close()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/runs/stream", {}),
        ("POST", "/stream/events", {"channels": ["updates"]}),
        ("GET", "/stream", None),
    ],
)
async def test_a_stream_that_its_server_cuts_off_has_no_end(
    method: str, path: str, body: dict[str, Any] | None
) -> None:
    with DevServer(flags=["--langgraph", "127.0.0.1:0"]) as server:
        graphs = build_graphs(server.address)
        async with httpx.AsyncClient(base_url=find_url(server), timeout=60) as http:
            thread = (await http.post("/threads", json={})).json()["thread_id"]
            given = {"assistant_id": "slow", "input": {"steps": 1000, "seconds": 0.05}, "stream_mode": ["updates"]}
            if path != "/runs/stream":
                await http.post(f"/threads/{thread}/runs", json=given)
            async with http.stream(
                method, f"/threads/{thread}{path}", json=None if body is None else given | body
            ) as response:
                with pytest.raises(httpx.RemoteProtocolError):  # SDKs take another end for that of the run
                    async for line in response.aiter_lines():
                        if line == "event: updates" and server.process.poll() is None:
                            server.process.terminate()
        for graph in graphs:
            graph.detach()


@pytest.mark.parametrize("_", range(int(os.environ.get("KILLS", "1"))))
async def test_a_killed_server_loses_no_update(tmp_path: Path, _: int) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"])
    graphs = build_graphs(server.address)
    url = find_url(server)
    seen: list[int] = []
    try:
        async with get_client(url=url, api_key=None) as client:
            thread = await new_thread(client)
            given = {"steps": 20, "seconds": 0.05}
            async for part in client.runs.stream(
                thread, "slow", input=given, stream_mode="updates", stream_resumable=True
            ):
                if part.event == "updates":
                    seen += part.data["tick"]["seen"]  # type: ignore[index]
                if len(seen) == 5 and server.process.poll() is None:
                    server.process.kill()
                    server.process.wait()
                    flags = ["--langgraph", url.removeprefix("http://")]
                    server = await asyncio.to_thread(DevServer, store=store, flags=flags, port=server.port)
    finally:
        for graph in graphs:
            graph.detach()
        server.close()
    assert seen == list(range(20))
