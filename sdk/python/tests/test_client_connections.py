"""How a client without a graph is protected, and what it does when connections, servers and workers are not there."""

from __future__ import annotations

import asyncio
import datetime
import gc
import logging
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphd import AsyncClient, Client, Security
from graphd.dev import DevServer, dev
from graphd.errors import (
    ConflictError,
    GraphdError,
    InvalidSecurityError,
    LimitExceededError,
    OmittedValue,
    UnauthenticatedError,
)
from graphd.remote import RunOptions
from graphd.transport import server as transport
from tests.gate import Gate
from tests.graph_documents import COUNT
from tests.relay import Relay
from tests.test_secured_calls import as_alice, make_certificates, server_flags
from tests.test_worker import wait_until


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A server that wants certificates of clients."""
    certs = make_certificates(tmp_path_factory.mktemp("certs"))
    with dev(flags=server_flags(certs, mutual=True), security=as_alice(certs)) as started:
        Client(started.address, security=started.security).graphs.put(COUNT)
        yield started


async def test_calls_and_streams_use_certificates(mutual: DevServer) -> None:
    client = Client(mutual.address, security=mutual.security)
    with client.runs.stream("client-count", {"left": 2}) as stream:
        assert len(list(stream)) == 2
    other = AsyncClient(mutual.address, security=mutual.security)
    async with other.runs.stream("client-count", {"left": 2}) as followed:
        assert [item.data["step"]["left"] async for item in followed] == [1, 0]
    assert (await other.threads.get(stream.thread_id)).state == "idle"
    with pytest.raises(GraphdError):
        Client(mutual.address, security=Security(ca=mutual.security.ca), timeout=5).graphs.get("client-count")


async def test_every_call_carries_the_token(server: DevServer, client: Client) -> None:
    with Gate(server.address, "t0-ken") as gate:
        secret = Security(token=lambda: "t0-ken")
        plain, other = Client(gate.address, security=secret), AsyncClient(gate.address, security=secret)
        run = plain.runs.start("client-count", {"left": 1})
        assert (await other.runs.wait(run.thread_id)).state == "succeeded"
        async with other.runs.watch(run.thread_id, run.run_id) as stream:
            assert len([item async for item in stream]) == 1
        plain.inbox.watch(timeout=60).close()
        assert {header for _, header in gate.calls} == {"Bearer t0-ken"}
        assert gate.methods() >= {"StartRun", "WaitRun", "Watch"}
        with pytest.raises(UnauthenticatedError):
            Client(gate.address, security=Security(token="other")).threads.get("t")
    with pytest.raises(InvalidSecurityError, match=r"not sent to graphd\.internal:7700 in plain text"):
        Client("graphd.internal:7700", security=Security(token="t0-ken"))


def test_the_environment_says_how(server: DevServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with Gate(server.address, "from-environment") as gate:
        monkeypatch.setenv("GRAPHD_SERVER", gate.address)
        monkeypatch.setenv("GRAPHD_TOKEN", "from-environment")
        assert Client().graphs.get("client-count").name == "client-count"


def test_a_broken_connection_loses_nothing(server: DevServer, client: Client) -> None:
    with Gate(server.address, "") as gate:
        stream = Client(gate.address).runs.stream("client-count", {"left": 200})
        seen = [next(stream).data["step"]["log"][0]]
        gate.end_streams()
        seen += [item.data["step"]["log"][0] for item in stream]
    assert seen == list(range(200, 0, -1))


@pytest.fixture
def silent(server: DevServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A network whose connections can fall silent: nothing says that they are gone, but a ping without an answer."""
    monkeypatch.setattr(transport, "_KEEPALIVE", (500, 500))
    with Relay(server.port) as relay:
        yield relay


def test_a_stream_whose_connection_falls_silent_goes_on(client: Client, silent: Relay) -> None:
    stream = Client(silent.address).runs.stream("client-elsewhere", {}, stream_mode="tasks", timeout=60)
    next(stream)
    silent.freeze()
    client.runs.cancel(stream.thread_id, wait=True)
    with pytest.raises(GraphdError) as ended:
        list(stream)
    assert ended.value.reason == "CANCELLED_BY_CLIENT"


async def test_an_async_stream_whose_connection_falls_silent_goes_on(client: Client, silent: Relay) -> None:
    stream = AsyncClient(silent.address).runs.stream("client-elsewhere", {}, stream_mode="tasks", timeout=60)
    await anext(stream)
    silent.freeze()
    client.runs.cancel(stream.thread_id, wait=True)
    with pytest.raises(GraphdError) as ended:
        [item async for item in stream]
    assert ended.value.reason == "CANCELLED_BY_CLIENT"


def test_a_server_that_drains_hands_its_streams_over(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    first = dev(store=store)
    try:
        client = Client(first.address)
        client.graphs.put(COUNT)
        stream = client.runs.stream("client-count", {"left": 300})
        seen = [next(stream).data["step"]["log"][0]]
        first.process.terminate()
        first.process.wait()
        first = dev(store=store, port=first.port)
        seen += [item.data["step"]["log"][0] for item in stream]
        assert seen == list(range(300, 0, -1))
    finally:
        first.close()


def test_a_wait_outlives_its_connection(server: DevServer, client: Client) -> None:
    with Gate(server.address, "") as gate, ThreadPoolExecutor() as pool:
        client.runs.start("client-elsewhere", {"log": ["in"]}, thread_id="outlived")
        waiting = pool.submit(Client(gate.address).runs.wait, "outlived", timeout=60)
        wait_until(lambda: gate.has_passed("WaitRun"))
        gate.end_streams()
        wait_until(lambda: [method for method, _ in gate.calls].count("WaitRun") > 1)
        client.runs.cancel("outlived")
        with pytest.raises(GraphdError) as cancelled:
            waiting.result()
        assert cancelled.value.reason == "CANCELLED_BY_CLIENT"


def test_a_stream_says_that_no_worker_has_the_node(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="graphd.client"):
        stream = client.runs.stream("client-elsewhere", {"log": ["in"]}, thread_id="elsewhere", timeout=3)
        with pytest.raises(TimeoutError):
            list(stream)
    assert "thread 'elsewhere', node 'away'" in caplog.text
    client.runs.cancel("elsewhere", wait=True)


async def test_a_question_shows_with_the_state_in_a_stream_that_goes_on(client: Client, server: DevServer) -> None:
    """The state before the cursor is read by another call, which does not hold up the loop."""
    other = AsyncClient(server.address)
    run = await other.runs.start("client-refund", {"request": "1"})
    await other.runs.wait(run.thread_id)
    watch = other.runs.watch(run.thread_id, run.run_id, stream_mode=["values", "updates"])
    items = [item async for item in watch]
    after = items[-3].cursor
    rest = [item async for item in other.runs.watch(run.thread_id, run.run_id, after=after, stream_mode="values")]
    assert [(item.data.get("request"), len(item.questions)) for item in rest] == [("1", 1)]


async def test_a_cancelled_reader_leaves_the_run(server: DevServer, client: Client) -> None:
    other = AsyncClient(server.address)
    begun = asyncio.Event()

    async def follow() -> None:
        async with other.runs.stream("client-elsewhere", {"log": ["in"]}, thread_id="cancelled-reader"):
            begun.set()
            await asyncio.Event().wait()

    reader = asyncio.create_task(follow())
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (await other.threads.get("cancelled-reader")).state == "busy"
    assert (await other.runs.cancel("cancelled-reader", wait=True)).state == "cancelled"


def test_labels_are_found_whatever_is_in_them(client: Client) -> None:
    for label in ('say "yes"', "back\\slash", "déjà vu ✓", "a AND b = c"):
        made = client.threads.create(metadata={label: label})
        assert [one.thread_id for one in client.threads.list(metadata={label: label})] == [made.thread_id]
    with pytest.raises(GraphdError) as refused:
        list(client.threads.list(state="bored"))
    assert refused.value.reason == "INVALID_FIELD"


def test_lists_have_all_pages(client: Client) -> None:
    made = {client.threads.create(metadata={"page": "many"}).thread_id for _ in range(120)}
    assert {one.thread_id for one in client.threads.list(metadata={"page": "many"})} == made


def test_an_open_question_is_assigned_and_expires(client: Client) -> None:
    run = client.runs.start("client-refund", {"request": "1"}, thread_id="assigned")
    client.runs.wait(run.thread_id)
    (question,) = client.inbox.list(thread_id="assigned")
    later = datetime.datetime(2199, 1, 1, tzinfo=datetime.timezone.utc)
    changed = client.inbox.update(question, assignees=["ann"], expires_at=later)
    assert (changed.assignees, changed.expires_at) == (("ann",), later)
    assert [one.thread_id for one in client.inbox.list(assignee="ann", graph="client-refund")] == ["assigned"]
    assert client.inbox.update(changed, expires_at=None).expires_at is None
    with pytest.raises(ConflictError):
        client.inbox.update(question, assignees=["bob"])
    with pytest.raises(ValueError, match="nothing to change"):
        client.inbox.update(question)
    with pytest.raises(ValueError, match="want a datetime with a time zone"):
        client.inbox.update(question, expires_at=datetime.datetime(2199, 1, 1))


def test_values_that_are_too_large_are_named() -> None:
    with dev(flags=["--max-message", "65536", "--max-payload", "40000"]) as small:
        client = Client(small.address)
        client.graphs.put(WIDE)
        keys = [f"k{number}" for number in range(4)]
        stream = client.runs.stream("client-wide", {key: ["x" * 9_000] for key in keys}, stream_mode="values")
        with pytest.warns(OmittedValue, match=r"the state in superstep .* is left out"):
            assert len(list(stream)) == 1, "the input, and not what has become of it"
        with pytest.raises(LimitExceededError):
            client.threads.get_state(stream.thread_id)
        assert set(client.threads.get_state(stream.thread_id, keys=["k1"]).values) == {"k1"}


WIDE = """
graph: client-wide
channels: { k0: append, k1: append, k2: append, k3: append }
nodes:
  more:
    expr:
      update:
        k0: ["state.k0[0] + state.k0[0]"]
        k1: ["state.k1[0] + state.k1[0]"]
edges: [START -> more -> END]
"""


def test_ids_of_runs_are_checked_and_kept(client: Client) -> None:
    options: Any = RunOptions(run_id="my-run-1", interrupt_before=["step"])
    assert client.runs.start("client-count", {"left": 1}, thread_id="ids", options=options).run_id == "my-run-1"
    with pytest.raises(ValueError, match="run_id is 'my run': want 1 to 128"):
        RunOptions(run_id="my run")


def test_channels_end_with_their_loops(client: Client, server: DevServer) -> None:
    async def call() -> weakref.ref[Any]:
        channel = transport.server_at(server.address).astubs
        await AsyncClient(server.address).graphs.get("client-count")
        return weakref.ref(channel)

    made = [asyncio.run(call()) for _ in range(4)]
    gc.collect()
    assert sum(one() is not None for one in made) <= 1  # the last stays until there is another
