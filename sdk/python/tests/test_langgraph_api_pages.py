"""The requests of Agent Inbox and Agent Chat UI, with their bodies and in their order."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from graphd.dev import DevServer
from tests.langgraph_api.graphs import build_graphs
from tests.langgraph_api.server import find_url

pytestmark = pytest.mark.usefixtures("one_authority")

ORIGIN = "http://localhost:3000"
SHOWN_TO_PAGES = "access-control-expose-headers"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    flags = ["--langgraph", "127.0.0.1:0", "--langgraph-origin", ORIGIN]
    with DevServer(flags=flags) as server:
        graphs = build_graphs(server.address)
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def page(url: str) -> AsyncIterator[Page]:
    async with httpx.AsyncClient(base_url=url, headers={"origin": ORIGIN}, timeout=60) as http:
        yield Page(http)


class Page:
    """Sends what a page sends."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        answer = await self.http.request(method, path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text[:500]
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        return answer

    async def post(self, path: str, body: Any) -> Any:
        return (await self.send("POST", path, body)).json()

    async def get(self, path: str) -> Any:
        return (await self.send("GET", path)).json()

    async def stream(self, method: str, path: str, body: Any = None, **headers: str) -> list[tuple[str, Any]]:
        """The events of a stream, and their data."""
        return read_events((await self.send(method, path, body, **headers)).text)

    async def submit(self, thread: str, body: Any) -> list[tuple[str, Any]]:
        """Chat UI streams each run with these fields."""
        always = {
            "assistant_id": "agent",
            "stream_mode": ["values", "messages-tuple", "custom"],
            "stream_subgraphs": True,
            "stream_resumable": True,
            "on_disconnect": "continue",
        }
        return await self.stream("POST", f"/threads/{thread}/runs/stream", always | body)


def read_events(text: str) -> list[tuple[str, Any]]:
    shown = []
    for block in text.split("\r\n\r\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            shown.append((fields["event"], json.loads(fields["data"])))
    return shown


def texts(values: Any) -> list[str]:
    return [f"{m['type']}: {m['content']}" for m in values["messages"]]


async def ask_in_inbox(page: Page, email: str) -> str:
    thread = str((await page.post("/threads", {}))["thread_id"])
    await page.post(f"/threads/{thread}/runs/wait", {"assistant_id": "inbox", "input": {"email": email}})
    return thread


async def find_in_inbox(page: Page, thread: str, status: str | None = "interrupted", **metadata: str) -> Any:
    """The thread as a list of Agent Inbox shows it, None for a thread that it does not show."""
    body = {"offset": 0, "limit": 100, "metadata": metadata or {"graph_id": "inbox"}}
    found = await page.post("/threads/search", body | ({"status": status} if status else {}))
    for one in found:
        assert {"thread_id", "status", "created_at", "values", "interrupts"} <= one.keys()
    return next((one for one in found if one["thread_id"] == thread), None)


async def test_agent_inbox_lists_what_waits(page: Page) -> None:
    thread = await ask_in_inbox(page, "hello")
    waiting = await find_in_inbox(page, thread)
    question = next(iter(waiting["interrupts"].values()))[0]["value"][0]
    assert question["action_request"] == {"action": "send_email", "args": {"to": "ann", "body": "hello"}}
    assert waiting["values"] == {"email": "hello"}
    assistant = (await page.post("/assistants/search", {"graph_id": "inbox"}))[0]["assistant_id"]
    assert await find_in_inbox(page, thread, assistant_id=assistant) == waiting
    assert await find_in_inbox(page, thread, status=None) == waiting
    assert await find_in_inbox(page, thread, status="idle") is None

    state = await page.get(f"/threads/{thread}/state")
    assert state["tasks"][-1]["interrupts"][-1]["value"] == [question]


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "accept", "args": None},
        {"type": "edit", "args": {"action": "send_email", "args": {"to": "bob", "body": "x"}}},
        {"type": "response", "args": "not like this"},
        {"type": "ignore", "args": None},
    ],
    ids=lambda answer: answer["type"],
)
async def test_agent_inbox_answers(page: Page, answer: dict[str, Any]) -> None:
    thread = await ask_in_inbox(page, "hello")
    run = await page.post(f"/threads/{thread}/runs", {"assistant_id": "inbox", "command": {"resume": [answer]}})
    values = await page.get(f"/threads/{thread}/runs/{run['run_id']}/join")
    assert values["outcome"] == answer
    done = await find_in_inbox(page, thread, status="idle")
    assert (done["status"], done["interrupts"]) == ("idle", {})


async def test_agent_inbox_answers_as_a_stream(page: Page) -> None:
    thread = await ask_in_inbox(page, "hello")
    body = {
        "assistant_id": "inbox",
        "command": {"resume": [{"type": "accept", "args": None}]},
        "stream_mode": "events",
    }
    events = await page.stream("POST", f"/threads/{thread}/runs/stream", body)
    seen = [(data["event"], data["name"]) for name, data in events if name == "events"]
    assert ("on_chain_end", "triage") in seen
    assert (await page.get(f"/threads/{thread}"))["status"] == "idle"


async def test_agent_inbox_ignores(page: Page) -> None:
    thread = await ask_in_inbox(page, "hello")
    await page.post(f"/threads/{thread}/state", {"values": None, "as_node": "__end__"})
    done = await find_in_inbox(page, thread, status="idle")
    assert (done["values"], done["interrupts"]) == ({"email": "hello"}, {})


async def test_agent_chat_ui_chats_edits_and_regenerates(page: Page) -> None:
    assert (await page.get("/info"))["flags"]["assistants"]
    thread = str((await page.post("/threads", {"metadata": {}, "thread_id": str(uuid.uuid4())}))["thread_id"])
    assert await page.post(f"/threads/{thread}/history", {"limit": 10}) == []
    first = {"id": "h1", "type": "human", "content": "hi there"}
    events = await page.submit(thread, {"input": {"messages": [first]}})
    assert [name for name, _ in events[:2]] == ["metadata", "values"]
    tokens = "".join(data[0]["content"] for name, data in events if name == "messages")
    assert tokens == "You said: hi there"
    assert texts(events[-1][1]) == ["human: hi there", "ai: You said: hi there"]

    listed = await page.post("/threads/search", {"metadata": {"graph_id": "agent"}, "limit": 100})
    assert thread in [one["thread_id"] for one in listed]

    history = await page.post(f"/threads/{thread}/history", {"limit": 1000})
    at = {key: history[-1]["checkpoint"][key] for key in ("checkpoint_id", "checkpoint_ns")}
    edited = {"id": "h1", "type": "human", "content": "hi again"}
    shown = await page.submit(thread, {"input": {"messages": [edited]}, "checkpoint": at})
    assert texts(shown[-1][1]) == ["human: hi again", "ai: You said: hi again"]

    history = await page.post(f"/threads/{thread}/history", {"limit": 1000})
    before_answer = next(state for state in history if state["next"] == ["model"])
    at = {key: before_answer["checkpoint"][key] for key in ("checkpoint_id", "checkpoint_ns")}
    shown = await page.submit(thread, {"input": None, "checkpoint": at})
    assert texts(shown[-1][1]) == ["human: hi again", "ai: You said: hi again"]


async def ask_in_chat(page: Page) -> tuple[str, Any]:
    """A thread of Agent Chat UI with a tool that waits for its approval, and its last values."""
    thread = str((await page.post("/threads", {}))["thread_id"])
    use = {"id": str(uuid.uuid4()), "type": "human", "content": "use the tool"}
    events = await page.submit(thread, {"input": {"messages": [use]}})
    return thread, events[-1][1]


async def test_agent_chat_ui_approves_a_tool(page: Page) -> None:
    thread, values = await ask_in_chat(page)
    (question,) = values["__interrupt__"]
    assert question["value"]["action_requests"][0]["name"] == "send"
    approve = {"resume": {"decisions": [{"type": "approve"}]}}
    events = await page.submit(thread, {"input": {}, "command": approve})
    assert texts(events[-1][1])[-2:] == ["tool: approve", "ai: finished"]
    assert "__interrupt__" not in events[-1][1]


async def test_agent_chat_ui_resolves_a_question(page: Page) -> None:
    thread, values = await ask_in_chat(page)
    await page.submit(thread, {"command": {"goto": "__end__"}})
    found = await page.get(f"/threads/{thread}")
    assert (found["status"], found["interrupts"]) == ("idle", {})
    assert found["values"]["messages"] == values["messages"]


async def test_agent_chat_ui_joins_and_stops_a_run(page: Page) -> None:
    """The page was loaded again while its run goes on. Its id comes from Content-Location."""
    thread = str((await page.post("/threads", {}))["thread_id"])
    body = {
        "assistant_id": "slow",
        "input": {"steps": 1000, "seconds": 0.02},
        "stream_mode": ["values", "messages-tuple", "custom"],
        "stream_resumable": True,
        "on_disconnect": "continue",
    }
    async with page.http.stream("POST", f"/threads/{thread}/runs/stream", json=body) as first:
        assert "Content-Location" in first.headers[SHOWN_TO_PAGES]
        run = first.headers["content-location"].rsplit("/", 1)[1]
        async for line in first.aiter_lines():
            if line == "event: custom":
                break
    path = f"/threads/{thread}/runs/{run}"
    async with page.http.stream("GET", path + "/stream", headers={"last-event-id": "-1"}) as again:
        seen = ""
        async for part in again.aiter_text():
            seen += part
            if "event: custom" in seen:
                break
        assert read_events(seen)[0] == ("metadata", {"run_id": run, "attempt": 1})
        await page.send("POST", path + "/cancel?wait=1&action=interrupt")
    assert (await page.get(path))["status"] == "interrupted"
    rest = await page.stream("GET", path + "/stream", **{"last-event-id": "-1"})
    assert rest[-1] == ("error", {"error": "UserInterrupt", "message": rest[-1][1]["message"]})
