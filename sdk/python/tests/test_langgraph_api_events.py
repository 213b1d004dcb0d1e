"""Protocol v2 of LangGraph Server: commands, and the events of a thread across its runs."""

from __future__ import annotations

import asyncio
import json
import operator
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Annotated, Any, TypedDict

import httpx
import pytest
from langgraph_sdk import get_client

from graphd import START, StateGraph, interrupt
from graphd.dev import DevServer
from tests.langgraph_api.graphs import build_graphs
from tests.langgraph_api.server import find_url

pytestmark = pytest.mark.usefixtures("one_authority")


class Notes(TypedDict, total=False):
    """What a graph and its subgraph note."""

    topic: str
    notes: Annotated[list[str], operator.add]


def build_nested(server: str) -> Any:
    """A graph with a subgraph that asks."""
    inner = StateGraph(Notes)
    inner.add_node("i1", lambda _: {"notes": ["i1"]})
    inner.add_node("i2", lambda state: {"notes": [f"i2={interrupt({'inner': state['topic']})}"]})
    inner.add_edge(START, "i1")
    inner.add_edge("i1", "i2")
    outer = StateGraph(Notes)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile(server=server, name="nested")


CHANNELS = ["values", "updates", "messages", "lifecycle", "input", "tasks", "custom"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = f"sqlite:{tmp_path_factory.mktemp('store')}/graphd.db"
    with DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server:
        graphs = [*build_graphs(server.address), build_nested(server.address)]
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


async def command(http: httpx.AsyncClient, thread: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    response = await http.post(f"/threads/{thread}/commands", json={"id": 7, "method": method, "params": params})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["id"] == 7
    return answer


async def start(http: httpx.AsyncClient, thread: str, graph: str, given: object) -> dict[str, Any]:
    answer = await command(http, thread, "run.start", {"assistant_id": graph, "input": given})
    assert answer["type"] == "success", answer
    return answer


async def events(
    http: httpx.AsyncClient, thread: str, until: str, then: Coroutine[Any, Any, Any] | None = None, **asked: Any
) -> list[dict[str, Any]]:
    """The events of a thread up to the first one of the root graph's life with this word. What is to be done ``then``
    is done when the stream is there."""
    seen: list[dict[str, Any]] = []
    async with http.stream(
        "POST", f"/threads/{thread}/stream/events", json={"channels": CHANNELS, **asked}
    ) as response:
        assert response.status_code == 200
        if then is not None:
            await then
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line.removeprefix("data: "))
            seen.append(event)
            if (
                event["method"] == "lifecycle"
                and not event["params"]["namespace"]
                and event["params"]["data"]["event"] == until
            ):
                return seen
    raise AssertionError(f"the stream has ended after {seen}")


def show(seen: list[dict[str, Any]], *methods: str) -> list[Any]:
    """What events of some methods say: the word of a life, or the data."""
    return [e["params"]["data"].get("event", e["params"]["data"]) for e in seen if e["method"] in methods]


def new_thread() -> str:
    return str(uuid.uuid4())


async def test_a_stream_may_begin_before_its_thread(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    seen = await events(http, thread, "interrupted", start(http, thread, "review", {"request": "r1"}))
    assert show(seen, "lifecycle", "values") == [
        "running",
        {"request": "r1", "log": []},
        {"request": "r1", "log": ["analyze r1"]},
        "interrupted",
    ]
    asked = next(e for e in seen if e["method"] == "input.requested")["params"]
    assert asked["namespace"] == [] and asked["data"]["payload"] == {"question": "approve?", "request": "r1"}
    assert asked["data"]["value"] == asked["data"]["payload"], "the Python SDK reads value"
    assert {"node": "analyze", "values": {"log": ["analyze r1"]}} in show(seen, "updates")
    assert len({e["event_id"] for e in seen}) == len(seen)
    numbers = [e["seq"] for e in seen]
    assert numbers == sorted(numbers)


async def test_an_answer_goes_on_in_the_same_stream(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "review", {"request": "r2"})
    seen = await events(http, thread, "interrupted")
    question = show(seen, "input.requested")[0]["interrupt_id"]
    following = asyncio.create_task(events(http, thread, "completed", since=seen[-1]["seq"]))
    answer = {"namespace": [], "interrupt_id": question, "response": "yes"}
    done = await command(http, thread, "input.respond", answer)
    assert done["type"] == "success" and done["meta"]["applied_through_seq"] >= seen[-1]["seq"]
    later = await following
    assert show(later, "lifecycle") == ["running", "completed"]
    assert show(later, "values")[-1] == {
        "request": "r2",
        "decision": "yes",
        "log": ["analyze r2", "human", "execute"],
        "result": "done yes",
    }
    assert min(e["seq"] for e in later) > done["meta"]["applied_through_seq"]
    again = await command(http, thread, "input.respond", answer)
    assert (again["type"], again["error"]) == ("error", "no_such_interrupt"), again


async def test_what_was_seen_is_not_sent_again(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "slow", {"steps": 2, "seconds": 0})
    seen = await events(http, thread, "completed")
    for at, event in enumerate(seen[:-1]):
        rest = await events(http, thread, "completed", since=event["seq"])
        durable = [e["event_id"] for e in seen[at + 1 :] if e["method"] != "custom"]
        assert [e["event_id"] for e in rest if e["method"] != "custom"] == durable


async def test_a_stream_that_goes_on_in_a_subgraph_sees_its_end(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "nested", {"topic": "t"})
    asked = show(await events(http, thread, "interrupted"), "input.requested")[0]
    await command(http, thread, "input.respond", {"interrupt_id": asked["interrupt_id"], "response": "in"})
    seen = await events(http, thread, "completed")
    for at, event in enumerate(seen[:-1]):
        rest = await events(http, thread, "completed", since=event["seq"])
        assert [(e["event_id"], e["method"]) for e in rest] == [(e["event_id"], e["method"]) for e in seen[at + 1 :]]
    some = await events(http, thread, "completed", channels=["lifecycle", "values"])
    assert [e["event_id"] for e in some] == [e["event_id"] for e in seen if e["method"] in ("lifecycle", "values")]


async def test_a_number_of_another_log_hides_nothing(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "chain", {})
    await events(http, thread, "completed")
    assert show(await events(http, thread, "completed", since=2**52), "lifecycle")[-1] == "completed"


async def test_several_answers_count_together(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "twins", {"topic": "t"})
    asked = show(await events(http, thread, "interrupted"), "input.requested")
    answers = [
        {"namespace": [], "interrupt_id": q["interrupt_id"], "response": f"for {q['payload']['ask']}"} for q in asked
    ]
    wrong = [answers[0], {**answers[1], "interrupt_id": "f" * 32}]
    refused = await command(http, thread, "input.respond", {"responses": wrong})
    assert refused["error"] == "no_such_interrupt"
    await command(http, thread, "input.respond", {"responses": answers})
    values = show(await events(http, thread, "completed"), "values")[-1]
    assert values["answers"] == ["a=for a", "b=for b", "join"]


async def test_an_input_is_no_answer(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "review", {"request": "first"})
    await events(http, thread, "interrupted")
    await start(http, thread, "review", {"request": "second"})
    state = (await http.get(f"/threads/{thread}/state")).json()
    for _ in range(100):
        if state["interrupts"] and state["values"]["request"] == "second":
            break
        await asyncio.sleep(0.05)
        state = (await http.get(f"/threads/{thread}/state")).json()
    assert state["interrupts"][0]["value"] == {"question": "approve?", "request": "second"}
    assert "decision" not in state["values"]


async def test_subgraphs_live_in_their_namespaces(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "nested", {"topic": "t"})
    seen = await events(http, thread, "interrupted")
    inner = [e["params"] for e in seen if e["method"] == "lifecycle" and e["params"]["namespace"]]
    assert [p["data"]["event"] for p in inner] == ["started", "interrupted"]
    assert inner[0]["namespace"][0].startswith("inner:") and inner[0]["data"]["graph_name"] == "inner"
    asked = next(e for e in seen if e["method"] == "input.requested")["params"]
    assert asked["namespace"] == inner[0]["namespace"]

    async def methods(**asked: Any) -> set[str]:
        async with http.stream(
            "POST", f"/threads/{thread}/stream/events", json={"channels": CHANNELS, **asked}
        ) as response:
            shown = set()
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    shown.add("/".join(n.split(":")[0] for n in event["params"]["namespace"]))
                    if event["method"] == "lifecycle" and event["params"]["data"]["event"] == "interrupted":
                        return shown
            return shown

    assert await methods(namespaces=[["inner"]]) == {"inner"}
    assert await methods(namespaces=[[]], depth=0) == {""}
    answer = {"namespace": asked["namespace"], "interrupt_id": asked["data"]["interrupt_id"], "response": "in"}
    await command(http, thread, "input.respond", answer)
    seen = await events(http, thread, "completed")
    assert show(seen, "values")[-1]["notes"] == ["i1", "i2=in"]
    assert [e["params"]["data"]["event"] for e in seen if e["method"] == "lifecycle"] == [
        "running",
        "started",
        "completed",
        "completed",
    ]


async def test_a_failure_shows(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "fail", {"x": 3})
    seen = await events(http, thread, "failed")
    assert seen[-1]["params"]["data"] == {"event": "failed", "graph_name": "fail", "error": "boom 3"}


async def test_tokens_are_blocks_of_a_message(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "agent", {"messages": [{"role": "user", "content": "first"}]})
    seen: list[dict[str, Any]] = []
    body = {"channels": ["messages", "lifecycle"]}
    async with http.stream("POST", f"/threads/{thread}/stream/events", json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            seen.append(json.loads(line.removeprefix("data: "))["params"]["data"])
            ended = [at for at, data in enumerate(seen) if data["event"] == "completed"]
            if len(ended) == 2:
                break
            if seen[-1]["event"] == "completed":  # the stream is there: tokens are for those who listen
                await start(http, thread, "agent", {"messages": [{"role": "user", "content": "hi there"}]})
    shown = [data for data in seen[ended[0] + 1 :] if data["event"] not in ("running", "completed")]
    assert [d["event"] for d in shown[:2]] == ["message-start", "content-block-start"]
    assert [d["event"] for d in shown[-2:]] == ["content-block-finish", "message-finish"]
    assert "".join(d["delta"]["text"] for d in shown if d["event"] == "content-block-delta") == "You said: hi there"
    assert shown[-2]["content"] == {"type": "text", "text": "You said: hi there"}


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("nope", {}, "unknown_command"),
        ("run.start", {"input": {}}, "invalid_argument"),
        ("run.start", {"assistant_id": "nope", "input": {}}, "invalid_argument"),
        (
            "run.start",
            {"assistant_id": "review", "input": {}, "langsmith_tracer": {"project_name": "p"}},
            "invalid_argument",
        ),
        ("input.respond", {}, "invalid_argument"),
        ("input.respond", {"responses": []}, "invalid_argument"),
        ("input.respond", {"interrupt_id": "f" * 32}, "invalid_argument"),
        ("input.respond", {"interrupt_id": "no id", "response": 1}, "no_such_interrupt"),
        ("input.respond", {"interrupt_id": "f" * 32, "response": 1}, "no_such_run"),
        ("agent.getTree", {}, "no_such_run"),
        ("input.inject", {"namespace": [], "message": {"role": "user", "content": "x"}}, "not_supported"),
    ],
)
async def test_wrong_commands(http: httpx.AsyncClient, method: str, params: dict[str, Any], error: str) -> None:
    answer = await command(http, new_thread(), method, params)
    assert (answer["type"], answer["error"]) == ("error", error), answer
    assert answer["message"]


async def test_the_newest_run_has_a_tree(http: httpx.AsyncClient) -> None:
    thread = new_thread()
    await start(http, thread, "review", {"request": "r"})
    await events(http, thread, "interrupted")
    tree = (await command(http, thread, "agent.getTree", {}))["result"]["tree"]
    assert tree == {"namespace": [], "status": "interrupted", "graph_name": "review"}


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"channels": []},
        {"channels": ["nope"]},
        {"channels": ["values"], "depth": -1},
        {"channels": ["values"] * 101},
    ],
)
async def test_wrong_streams(http: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    response = await http.post(f"/threads/{new_thread()}/stream/events", json=asked)
    assert response.status_code == 422
    assert response.json()["field"] in ("channels", "depth")


async def test_a_command_needs_an_id(http: httpx.AsyncClient) -> None:
    response = await http.post(f"/threads/{new_thread()}/commands", json={"method": "run.start"})
    assert response.status_code == 400
    assert response.json()["error"] == "invalid_argument"


async def test_the_sdk_streams_a_thread(url: str) -> None:
    async with get_client(url=url, api_key=None) as client:
        async with client.threads.stream(assistant_id="review") as thread:
            await thread.run.start(input={"request": "sdk"})
            seen = [values async for values in thread.values]
            assert seen[-1] == {"request": "sdk", "log": ["analyze sdk"]}
            assert thread.interrupted
            await thread.run.respond("yes", interrupt_id=thread.interrupts[0]["interrupt_id"])
            assert (await thread.output)["result"] == "done yes"
        async with client.threads.stream(assistant_id="fail") as thread:
            await thread.run.start(input={"x": 1})
            with pytest.raises(RuntimeError, match="boom 1"):
                await thread.output
