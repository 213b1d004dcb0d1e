"""Programs for LangGraph Server, with its Python SDK and RemoteGraph.

Each has run on LangGraph Server 0.16.7 (``langgraph dev``), and ``expected/`` has what it noted there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk.client import LangGraphClient

from tests.langgraph_api.notes import Notes, http_status

Flow = Callable[[LangGraphClient, str, Notes], Awaitable[None]]
NO_SUCH_ID = "00000000-0000-4000-8000-000000000009"


async def settle(client: LangGraphClient, thread: str, run: str) -> str:
    """Waits until a run is over, and returns its status."""
    while (found := await client.runs.get(thread, run))["status"] in ("pending", "running"):
        await asyncio.sleep(0.05)
    return str(found["status"])


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def interrupt_resume(client: LangGraphClient, url: str, n: Notes) -> None:
    created = await client.threads.create()
    thread = created["thread_id"]
    n.note("created", n.thread(created))
    given = {"request": "r1"}
    await n.note_stream("ask", client.runs.stream(thread, "review", input=given, stream_mode=["values", "updates"]))
    n.note("thread", n.thread(await client.threads.get(thread)))
    n.note("state", n.state(await client.threads.get_state(thread)))
    n.note("history", [n.state(s) for s in await client.threads.get_history(thread)])
    answer = {"resume": {"decision": "ok"}}
    await n.note_stream("answer", client.runs.stream(thread, "review", command=answer, stream_mode="updates"))
    n.note("thread after", n.thread(await client.threads.get(thread)))
    n.note("runs", [run["status"] for run in await client.runs.list(thread)])


async def inbox(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "inbox", input={"email": "hello"})
    n.note("run", await settle(client, thread, run["run_id"]))
    waiting = await client.threads.search(limit=100, offset=0, status="interrupted", metadata={"graph_id": "inbox"})
    n.note("found", [n.thread(t) for t in waiting if t["thread_id"] == thread])
    run = await client.runs.create(thread, "inbox", command={"resume": [{"type": "accept", "args": None}]})
    n.note("resumed", await settle(client, thread, run["run_id"]))
    n.note("thread", n.thread(await client.threads.get(thread)))
    thread = await new_thread(client)
    await client.runs.wait(thread, "inbox", input={"email": "no"})
    await client.threads.update_state(thread, None, as_node="__end__")
    n.note("ignored", n.thread(await client.threads.get(thread)))


async def chat(client: LangGraphClient, url: str, n: Notes) -> None:
    thread, text = await new_thread(client), ""
    async for part in client.runs.stream(
        thread,
        "agent",
        input={"messages": [{"type": "human", "id": "h1", "content": "hi there"}]},
        stream_mode=["values", "messages-tuple"],
        stream_subgraphs=True,
        stream_resumable=True,
    ):
        if part.event == "messages":
            text += part.data[0]["content"]  # type: ignore[index]
    n.note("tokens", text)
    n.note("history", [n.state(s) for s in await client.threads.get_history(thread, limit=10)])
    use = {"messages": [{"role": "user", "content": "use tool"}]}
    await n.note_stream("tool", client.runs.stream(thread, "agent", input=use, stream_mode=["values"]))
    approve = {"resume": {"decisions": [{"type": "approve"}]}}
    await n.note_stream(
        "approve", client.runs.stream(thread, "agent", input={}, command=approve, stream_mode=["values"])
    )


async def join(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    given = {"steps": 3, "seconds": 0.3}
    run = (
        await client.runs.create(thread, "slow", input=given, stream_mode=["updates", "custom"], stream_resumable=True)
    )["run_id"]
    while not (await client.threads.get_state(thread))["values"].get("seen"):  # type: ignore[union-attr]
        await asyncio.sleep(0.05)
    await n.note_stream("replay", client.runs.join_stream(thread, run, last_event_id="-1"))
    n.note("join", n.values(await client.runs.join(thread, run)))
    n.note("after the end", [part.event async for part in client.runs.join_stream(thread, run)])


async def two_questions(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    n.note("ask", n.questions(await client.runs.wait(thread, "twins", input={"topic": "x"})))  # type: ignore[arg-type]
    state = await client.threads.get_state(thread)
    n.note("state", n.state(state))  # type: ignore[arg-type]
    ids: dict[str, Any] = {i["value"]["ask"]: i["id"] for i in state["interrupts"]}
    n.note("a", n.questions(await client.runs.wait(thread, "twins", command={"resume": {ids["a"]: 1}})))  # type: ignore[arg-type]
    n.note("thread", n.waiting_thread(await client.threads.get(thread)))
    n.note("b", n.values(await client.runs.wait(thread, "twins", command={"resume": {ids["b"]: 2}})))


async def failure_and_status(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    await n.note_stream("fail", client.runs.stream(thread, "fail", input={"x": 1}, stream_mode=["updates"]))
    n.note("thread", n.thread(await client.threads.get(thread)))
    wrong = (
        client.runs.create(NO_SUCH_ID, "chain", input={}),
        client.runs.get(thread, NO_SUCH_ID),
        client.runs.create(thread, "nope", input={}),
    )
    n.note("missing", [await http_status(call) for call in wrong])


async def double_texting(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    await client.runs.create(thread, "slow", input={"steps": 10, "seconds": 0.1})
    n.note("reject", await http_status(client.runs.create(thread, "slow", input={}, multitask_strategy="reject")))
    run = await client.runs.create(thread, "slow", input={"steps": 2, "seconds": 0.1})
    n.note("default is enqueue", await settle(client, thread, run["run_id"]))
    n.note("runs", [run["status"] for run in await client.runs.list(thread)])


async def state(client: LangGraphClient, url: str, n: Notes) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "review", input={"request": "x"})
    history = await client.threads.get_history(thread)
    await client.threads.update_state(thread, {"request": "changed"}, as_node="analyze")
    n.note("updated", n.state(await client.threads.get_state(thread)))
    n.note("go on", n.values(await client.runs.wait(thread, "review", input=None)))
    at = history[1]["checkpoint"]
    n.note("replay", n.values(await client.runs.wait(thread, "review", input=None, checkpoint=at)))


async def stateless(client: LangGraphClient, url: str, n: Notes) -> None:
    n.note("wait", n.values(await client.runs.wait(None, "chain", input={"n": 0})))
    await n.note_stream("stream", client.runs.stream(None, "chain", input={"n": 0}, stream_mode="updates"))


async def remote_graph(client: LangGraphClient, url: str, n: Notes) -> None:
    graph = RemoteGraph("review", url=url)
    config: Any = {"configurable": {"thread_id": await new_thread(client)}}
    n.note("invoke", n.values(await graph.ainvoke({"request": "rg"}, config)))
    n.note("next", list((await graph.aget_state(config)).next))
    n.note("resume", n.values(await graph.ainvoke(Command(resume="ok"), config)))


async def threads_assistants(client: LangGraphClient, url: str, n: Notes) -> None:
    made = await client.threads.create(metadata={"user": "u", "n": 1})
    n.note("thread", n.thread(made))
    found = await client.threads.search(metadata={"user": "u"}, limit=100)
    n.note("found", made["thread_id"] in [thread["thread_id"] for thread in found])
    await client.threads.delete(made["thread_id"])
    n.note("gone", await http_status(client.threads.get(made["thread_id"])))
    assistant = (await client.assistants.search(graph_id="review"))[0]
    drawing = await client.assistants.get_graph(assistant["assistant_id"])
    n.note("graph", sorted(node["id"] for node in drawing["nodes"]))  # type: ignore[index]


FLOWS: list[Flow] = [
    interrupt_resume,
    inbox,
    chat,
    join,
    two_questions,
    failure_and_status,
    double_texting,
    state,
    stateless,
    remote_graph,
    threads_assistants,
]
