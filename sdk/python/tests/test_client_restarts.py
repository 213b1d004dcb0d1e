"""Streams, watches and waits of a client go on when the server was killed."""

from __future__ import annotations

from pathlib import Path

from graphd import AsyncClient, Client
from graphd.dev import DevServer, dev
from tests.graph_documents import COUNT, REFUND, the_question


def restart(server: DevServer, store: str) -> DevServer:
    server.process.kill()
    server.process.wait()
    return dev(store=store, port=server.port)


def test_a_stream_goes_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = Client(server.address)
        client.graphs.put(COUNT)
        stream = client.runs.stream("client-count", {"left": 400}, thread_id="restart-1")
        seen = [next(stream).data["step"]["log"][0]]
        server = restart(server, store)
        seen += [item.data["step"]["log"][0] for item in stream]
        assert seen == list(range(400, 0, -1))
        assert stream.run is not None and stream.run.state == "succeeded"
    finally:
        server.close()


async def test_an_async_stream_and_a_watch_go_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = AsyncClient(server.address)
        await client.graphs.put(COUNT)
        await client.graphs.put(REFUND)
        watch = client.inbox.watch(timeout=120)
        await client.runs.start("client-refund", {"request": "1"}, thread_id="restart-2")
        asked = await anext(watch)
        stream = client.runs.stream("client-count", {"left": 400}, thread_id="restart-3")
        seen = [(await anext(stream)).data["step"]["log"][0]]
        server = restart(server, store)
        seen += [item.data["step"]["log"][0] async for item in stream]
        assert seen == list(range(400, 0, -1))
        await client.inbox.answer(asked.question, {"decision": "approved"})
        assert (await anext(watch)).question.state in ("answered", "consumed")
        await watch.aclose()
    finally:
        server.close()


def test_a_wait_goes_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    server = dev(store=store)
    try:
        client = Client(server.address)
        client.graphs.put(REFUND)
        client.runs.wait(
            "restart-4", client.runs.start("client-refund", {"request": "1"}, thread_id="restart-4").run_id
        )
        question = the_question(client, "restart-4")
        server = restart(server, store)
        run = client.inbox.answer(question, {"decision": "approved"})
        assert client.runs.wait("restart-4", run.run_id).output["decision"] == "approved"
    finally:
        server.close()
