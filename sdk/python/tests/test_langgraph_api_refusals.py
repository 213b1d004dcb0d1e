"""The API of LangGraph Server refuses what is wrong, and says what."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client

from graphd.dev import DevServer
from tests.langgraph_api.server import find_url
from tests.test_known_callers import make_key

pytestmark = pytest.mark.usefixtures("one_authority")

ORIGIN = "http://localhost:3000"
NAME = "graphd.example"
NOWHERE = str(uuid.uuid4())
COUNT = """
graph: count
channels:
  n: {}
  text: {}
nodes:
  step:
    expr:
      update:
        n: state.n + 1
edges: [START -> step]
conditional_edges:
  - from: step
    cases:
      - { when: state.n < 10, to: step }
      - { to: END }
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.yaml"


@pytest.fixture(scope="module")
def ann(keys: Path) -> str:
    """The key of a caller who may do everything."""
    return make_key(keys, "ann")


@pytest.fixture(scope="module")
def viewer(keys: Path) -> str:
    """The key of a caller who only sees."""
    return make_key(keys, "vera", ["viewer"])


@pytest.fixture(scope="module")
def starter(keys: Path) -> str:
    """The key of a caller who starts runs."""
    return make_key(keys, "stan", ["starter"])


@pytest.fixture(scope="module")
def url(keys: Path, ann: str, viewer: str, starter: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that knows its callers, with one graph."""
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "count.yaml").write_text(COUNT)
    flags = [
        "--langgraph",
        "127.0.0.1:0",
        "--langgraph-origin",
        ORIGIN,
        "--langgraph-host",
        NAME,
        "--api-keys",
        str(keys),
        "--max-message",
        "2000000",
    ]
    flags += ["--max-unread", "8000000"]
    flags += ["--max-langgraph-connections", "50", "--stall", "1s", "--graphs", str(folder), "--insecure"]
    with DevServer(flags=flags) as server:
        yield find_url(server)


@pytest.fixture
async def http(url: str, ann: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, headers={"x-api-key": ann}, timeout=60) as client:
        yield client


@pytest.fixture
async def thread(http: httpx.AsyncClient) -> str:
    return str((await http.post("/threads", json={})).json()["thread_id"])


def check_refusal(answer: httpx.Response, status: int, reason: str | None = None) -> dict[str, Any]:
    """A refusal has a sentence and a reason, whatever was sent."""
    assert answer.status_code == status, answer.text[:300]
    body = answer.json()
    assert len(body["detail"]) > 10
    assert body["reason"] == (reason or body["reason"])
    return dict(body)


async def test_callers_are_known_by_their_key(url: str, ann: str, viewer: str) -> None:
    async with get_client(url=url, api_key=ann) as client:
        thread = (await client.threads.create())["thread_id"]
    async with httpx.AsyncClient(base_url=url) as http:
        check_refusal(await http.post("/threads", json={}), 401)
        check_refusal(await http.post("/threads", json={}, headers={"x-api-key": "wrong"}), 401)
        check_refusal(await http.post("/threads", json={}, headers={"x-api-key": viewer}), 403, "ACCESS_DENIED")
        for headers in ({"x-api-key": viewer}, {"authorization": f"Bearer {viewer}"}):
            assert (await http.get(f"/threads/{thread}", headers=headers)).status_code == 200
        assert (await http.get("/ok")).status_code == 200


async def test_a_starter_starts_runs_and_drops_no_questions(url: str, ann: str, starter: str) -> None:
    async with get_client(url=url, api_key=starter) as client, get_client(url=url, api_key=ann) as admin:
        thread = (await client.threads.create())["thread_id"]
        assert await client.runs.wait(thread, "count", input={"n": 0}) == {"n": 10}
        parts = [p async for p in client.runs.stream(thread, "count", input={"n": 8}, stream_mode="values")]
        assert parts[-1].data == {"n": 10}
        created = await client.runs.create(thread, "count", input={"n": 9})
        assert await client.runs.join(thread, created["run_id"]) == {"n": 10}
        assert await client.runs.wait(None, "count", input={"n": 3}) == {"n": 10}
        values: Any = await client.runs.wait(thread, "count", input={"n": 1}, on_disconnect="cancel")
        assert values == {"n": 10}

        await admin.runs.wait(thread, "count", input={"n": 4}, interrupt_before=["step"])
        for path in ("runs", "runs/wait", "runs/stream"):
            body = {"assistant_id": "count", "input": {"n": 5}}
            refused = check_refusal(await client.http.client.post(f"/threads/{thread}/{path}", json=body), 403)
            assert "discard-questions" in refused["detail"], "why it may not"
        state = await admin.threads.get_state(thread)
        assert (state["values"], state["next"]) == ({"n": 4}, ["step"])


async def test_pages_of_other_sites_may_not_call(url: str, http: httpx.AsyncClient) -> None:
    check_refusal(
        await http.post("/threads", json={}, headers={"origin": "https://evil.example"}), 403, "ORIGIN_REFUSED"
    )
    asked = {"origin": ORIGIN, "access-control-request-method": "POST", "access-control-request-headers": "x-api-key"}
    preflight = await http.request("OPTIONS", "/threads", headers=asked)
    assert preflight.headers["access-control-allow-origin"] == ORIGIN
    assert preflight.headers["access-control-allow-headers"] == "x-api-key"
    answer = await http.post("/threads", json={}, headers={"origin": ORIGIN})
    assert "Content-Location" in answer.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/store/items"),
        ("GET", "/store/items/search"),
        ("POST", "/a2a/agent"),
        ("POST", "/mcp/"),
        ("GET", "/nothing"),
        ("PUT", "/threads"),
        ("POST", "/ok"),
    ],
)
async def test_endpoints_that_are_not_served(http: httpx.AsyncClient, method: str, path: str) -> None:
    check_refusal(await http.request(method, path, content=b"{}"), 404)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "assistant_id"),
        ({"assistant_id": 1}, "assistant_id"),
        ({"assistant_id": "nothing"}, "assistant_id"),
        ({"assistant_id": NOWHERE}, "assistant_id"),
        ({"assistant_id": "x" * 100_000}, None),
        ({"assistant_id": "\x00\n"}, "assistant_id"),
        ({"assistant_id": "count", "input": {}, "checkpoint_id": "x" * 1000}, "checkpoint"),
        ({"assistant_id": "count", "stream_mode": "all"}, "stream_mode"),
        ({"assistant_id": "count", "stream_mode": [1]}, "stream_mode"),
        ({"assistant_id": "count", "multitask_strategy": "hope"}, "multitask_strategy"),
        ({"assistant_id": "count", "if_not_exists": True}, "if_not_exists"),
        ({"assistant_id": "count", "on_disconnect": "cry"}, "on_disconnect"),
        ({"assistant_id": "count", "durability": "none"}, "durability"),
        ({"assistant_id": "count", "after_seconds": -1}, "after_seconds"),
        ({"assistant_id": "count", "after_seconds": 1e9}, "after_seconds"),
        ({"assistant_id": "count", "after_seconds": 5, "command": {"resume": 1}}, "after_seconds"),
        ({"assistant_id": "count", "after_seconds": 5, "command": {"goto": "__end__"}}, "after_seconds"),
        ({"assistant_id": "count", "after_seconds": 5, "multitask_strategy": "rollback"}, "multitask_strategy"),
        ({"assistant_id": "count", "webhook": "http://127.0.0.1/"}, "webhook"),
        ({"assistant_id": "count", "feedback_keys": ["x"]}, "feedback_keys"),
        ({"assistant_id": "count", "command": {"goto": {"input": 1}}}, "command.goto"),
        ({"assistant_id": "count", "command": {"update": [1]}}, "command.update"),
        ({"assistant_id": "count", "command": 1}, "command"),
        ({"assistant_id": "count", "config": {"recursion_limit": -1}}, "config.recursion_limit"),
        ({"assistant_id": "count", "input": {}, "metadata": {"langgraph.run.0": "x"}}, "metadata"),
        ({"assistant_id": "count", "input": {}, "metadata": {"x": "y" * 5000}}, "metadata"),
        ({"assistant_id": "count", "input": {}, "metadata": {str(n): n for n in range(100)}}, "metadata"),
        ({"assistant_id": "count", "input": "text"}, "input"),
        ({"assistant_id": "count", "input": [1]}, "input"),
    ],
)
async def test_wrong_run_requests(
    http: httpx.AsyncClient, thread: str, body: dict[str, Any], field: str | None
) -> None:
    for how in ("", "/wait", "/stream"):
        refused = check_refusal(await http.post(f"/threads/{thread}/runs{how}", json=body), 422)
        assert field is None or refused["field"] == field
    assert (await http.get(f"/threads/{thread}/runs")).json() == []


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 422),
        (b"[]", 422),
        (b"\xff\xfe", 422),
        (b'"x"', 422),
        (b'{"assistant_id":"count","input":{"text":"\xff"}}', 422),
        (b'{"assistant_id":"count","input":{"n":' + b"[" * 200 + b"]" * 200 + b"}}", 422),
        (b'{"assistant_id":"count","input":' + b"[" * 900_000 + b"]" * 900_000 + b"}", 422),
        (b'{"assistant_id":"count","input":{"n":"' + b"x" * 1_500_000 + b'"}}', 413),
        (b'{"assistant_id":"count","input":{"n":"' + b"x" * 3_000_000 + b'"}}', 413),
    ],
    ids=["cut", "list", "no UTF-8", "text", "no UTF-8 in a value", "deep", "very deep", "large value", "large body"],
)
async def test_wrong_bodies(http: httpx.AsyncClient, thread: str, content: bytes, status: int) -> None:
    check_refusal(await http.post(f"/threads/{thread}/runs", content=content), status)
    assert (await http.get(f"/threads/{thread}")).json()["status"] == "idle"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/threads/nothing", None, 422),
        ("GET", f"/threads/{NOWHERE}", None, 404),
        ("GET", f"/threads/{NOWHERE}/state", None, 404),
        ("GET", "/threads/THREAD/runs/nothing", None, 422),
        ("GET", "/threads/THREAD/runs/" + NOWHERE + "/join", None, 404),
        ("GET", "/threads/THREAD/runs?limit=-1", None, 422),
        ("GET", "/threads/THREAD/runs?status=odd", None, 422),
        ("GET", "/threads/THREAD/state/000000000009-00000000", None, 404),
        ("GET", "/threads/THREAD/state?subgraphs=maybe", None, 422),
        ("GET", "/threads/THREAD/state/%ff", None, 422),
        ("GET", "/threads/THREAD/state?checkpoint_ns=%ff", None, 422),
        ("POST", "/runs/cancel", {"thread_id": "THREAD", "run_ids": ["x"]}, 422),
        ("POST", "/threads/THREAD/state", {"values": [1]}, 400),
        ("POST", "/threads/THREAD/history", {"limit": 100_000}, 422),
        ("POST", "/threads/THREAD/history", {"before": [1]}, 422),
        ("POST", "/threads/search", {"limit": 0}, 422),
        ("POST", "/threads/search", {"limit": "many"}, 422),
        ("POST", "/threads/search", {"offset": 10_000_000}, 422),
        ("POST", "/threads/search", {"status": "sad"}, 422),
        ("POST", "/threads/search", {"values": {"n": 1}}, 422),
        ("POST", "/threads/search", {"sort_by": "values"}, 422),
        ("POST", "/threads/search", {"sort_order": "up"}, 422),
        ("POST", "/threads/search", {"ids": ["x"]}, 422),
        ("POST", "/threads", {"thread_id": "x"}, 422),
        ("POST", "/threads", {"if_exists": "maybe"}, 422),
        ("POST", "/threads", {"ttl": -1}, 422),
        ("POST", "/threads", {"ttl": {"ttl": 5, "strategy": "burn"}}, 422),
        ("POST", "/threads", {"metadata": {"graphd.typed": "x"}}, 422),
        ("POST", "/threads", {"metadata": 5}, 422),
        ("POST", "/threads", {"supersteps": [{}]}, 422),
        ("GET", "/assistants/nothing", None, 404),
        ("POST", "/assistants/search", {"offset": -1}, 422),
        ("POST", "/runs/wait", {"assistant_id": "count", "command": {"resume": 1}}, 422),
    ],
)
async def test_wrong_requests(
    http: httpx.AsyncClient, thread: str, method: str, path: str, body: Any, status: int
) -> None:
    content = None if body is None else json.dumps(body).replace("THREAD", thread).encode()
    check_refusal(await http.request(method, path.replace("THREAD", thread), content=content), status)


@pytest.mark.parametrize("how", ["", "/wait", "/stream"])
@pytest.mark.parametrize("disconnect", ["continue", "cancel"])
async def test_runs_that_do_not_begin_leave_no_thread(http: httpx.AsyncClient, how: str, disconnect: str) -> None:
    before = (await http.post("/threads/count", json={})).json()
    for wrong in ({"input": "text"}, {"input": {}, "metadata": {"langgraph.x": 1}}, {"command": {"goto": "nowhere"}}):
        body = {"assistant_id": "count", "on_completion": "keep", "on_disconnect": disconnect, **wrong}
        assert (await http.post("/runs" + how, json=body)).status_code in (400, 422)
    assert (await http.post("/threads/count", json={})).json() == before


async def test_large_answers_are_bounded(http: httpx.AsyncClient, thread: str) -> None:
    """Threads are named once, and what is put together holds a part of --max-unread."""
    body = {"assistant_id": "count", "input": {"n": 0, "text": "x" * 900_000}}
    assert (await http.post(f"/threads/{thread}/runs/wait", json=body)).status_code == 200
    found = await http.post("/threads/search", json={"ids": [thread, thread.upper()] * 100, "limit": 1000})
    assert [t["thread_id"] for t in found.json()] == [thread]
    check_refusal(await http.post(f"/threads/{thread}/history", json={"limit": 1000}), 429)
    assert len((await http.post(f"/threads/{thread}/history", json={"limit": 2})).json()) == 2


async def test_pages_whose_name_leads_to_this_machine_may_not_call(http: httpx.AsyncClient, thread: str) -> None:
    for method, path in (("GET", f"/threads/{thread}"), ("POST", "/threads"), ("GET", "/ok")):
        refused = await http.request(method, path, headers={"host": "evil.example:2024"}, json={})
        assert check_refusal(refused, 403, "ORIGIN_REFUSED")["field"] == "Host"
    for host in ("localhost:2024", "127.0.0.1", "[::1]:2024", NAME):
        assert (await http.get(f"/threads/{thread}", headers={"host": host})).status_code == 200


async def test_runs_that_are_cancelled_must_exist(http: httpx.AsyncClient, thread: str) -> None:
    """A run that has ended is no reason to leave others as they are."""
    body = {"assistant_id": "count", "input": {"n": 9}}
    ended = (await http.post(f"/threads/{thread}/runs", json=body)).json()["run_id"]
    await http.get(f"/threads/{thread}/runs/{ended}/join")
    given = {"thread_id": thread, "run_ids": [ended, NOWHERE]}
    assert check_refusal(await http.post("/runs/cancel", json=given), 404, "RUN_NOT_FOUND")["field"] == "run_ids"
    given["run_ids"] = [ended]
    assert (await http.post("/runs/cancel", json=given)).status_code == 204


async def test_a_mode_counts_once(http: httpx.AsyncClient, thread: str) -> None:
    modes = ["values", "updates"] * 500
    body = {"assistant_id": "count", "input": {"n": 9}, "stream_mode": modes}
    shown = await http.post(f"/threads/{thread}/runs/stream", json=body)
    assert [line for line in shown.text.splitlines() if line.startswith("event")] == [
        "event: metadata",
        "event: values",
        "event: updates",
        "event: values",
    ]


async def test_a_thread_exists_once(http: httpx.AsyncClient, thread: str) -> None:
    check_refusal(await http.post("/threads", json={"thread_id": thread}), 409, "THREAD_EXISTS")
    same = await http.post("/threads", json={"thread_id": thread.upper(), "if_exists": "do_nothing"})
    assert same.json()["thread_id"] == thread


async def test_text_that_looks_like_a_filter_finds_nothing_else(http: httpx.AsyncClient) -> None:
    odd = 'x" OR state = "IDLE\\'
    thread = (await http.post("/threads", json={"metadata": {odd: odd}})).json()["thread_id"]
    found = (await http.post("/threads/search", json={"metadata": {odd: odd}})).json()
    assert [t["thread_id"] for t in found] == [thread]
    assert (await http.post("/threads/search", json={"metadata": {"other": odd}})).json() == []


async def test_ids_of_events_that_are_none(http: httpx.AsyncClient, thread: str) -> None:
    run = await http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "count", "input": {"n": 1}})
    assert run.status_code == 200
    path = run.headers["content-location"] + "/stream"
    for wrong in ("x", "a-b-c-d", "-2", "L-1-1-1-1", "L-" + "9" * 30 + "-1-1"):
        check_refusal(await http.get(path, headers={"last-event-id": wrong}), 422)
    check_refusal(await http.get(path, headers={"last-event-id": "deadbeef-1-0-0"}), 410, "CURSOR_LOST")


async def test_clients_that_do_not_read_are_cut_off(http: httpx.AsyncClient, url: str, ann: str, thread: str) -> None:
    """The run goes on, and other clients are served meanwhile."""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(
        {"assistant_id": "count", "input": {"n": 0, "text": "x" * 900_000}, "stream_mode": ["values", "debug"]}
    )
    head = f"POST /threads/{thread}/runs/stream HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {ann}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall((head + body).encode())
        while not (runs := (await http.get(f"/threads/{thread}/runs")).json()) or runs[0]["status"] == "running":
            await asyncio.sleep(0.05)
        assert runs[0]["status"] == "success"


async def test_further_connections_wait(http: httpx.AsyncClient, url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(60)]
    async with httpx.AsyncClient(base_url=url, timeout=60) as other:
        call = asyncio.create_task(other.get("/ok"))
        for one in idle:
            one.close()
        assert (await call).status_code == 200
