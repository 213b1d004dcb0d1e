"""Assistants of the API of LangGraph Server: graphs with a configuration, in versions."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphd import START, StateGraph, interrupt
from graphd._gen.v1 import registry_service_pb2 as rs
from graphd.compiled.attached_graph import AttachedGraph
from graphd.dev import DevServer
from graphd.runtime import Runtime
from graphd.transport.server import call_unary, server_at
from tests.langgraph_api.notes import http_status
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")


class State(TypedDict, total=False):
    """What the graph `talk` has said."""

    said: Annotated[list[str], add]


class Context(TypedDict, total=False):
    """What an assistant of `talk` is configured with."""

    tone: str
    language: str


def talk(state: State, runtime: Runtime[Context]) -> State:
    """Says what the context is."""
    return {"said": [f"{runtime.context.get('tone')} {runtime.context.get('language')}"]}


def ask(state: State, runtime: Runtime[Context]) -> State:
    """Asks, and says who has asked."""
    return {"said": [f"{(runtime.context or {}).get('tone')}: {interrupt('?')}"]}


def build(server: str) -> list[AttachedGraph]:
    """The graphs `talk` and `ask`."""
    made: list[AttachedGraph] = []
    for name, node in (("talk", talk), ("ask", ask)):
        builder = StateGraph(State, context_schema=Context)
        builder.add_node(name + "ing", node)
        builder.add_edge(START, name + "ing")
        made.append(builder.compile(name=name, server=server))
    return made


@pytest.fixture(scope="module", params=["memory", "sqlite", "redis"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server,
    ):
        graphs = build(server.address)
        yield server
        for graph in graphs:
            graph.detach()


@pytest.fixture(scope="module")
def url(server: DevServer) -> str:
    return find_url(server)


@pytest.fixture(scope="module")
def address(server: DevServer) -> str:
    return str(server.address)


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made
        for one in await made.assistants.search(limit=1000):
            if one["metadata"].get("created_by") != "system":
                await made.assistants.delete(one["assistant_id"])


async def said(client: LangGraphClient, assistant: str, **fields: Any) -> list[str]:
    values: Any = await client.runs.wait(None, assistant, input={"said": []}, **fields)
    return values["said"]


async def test_an_assistant_has_versions(client: LangGraphClient) -> None:
    made = await client.assistants.create(
        "talk", context={"tone": "kind"}, metadata={"team": "blue", "level": 3}, name="Kind one", description="is kind"
    )
    assert (made["graph_id"], made["version"], made["name"]) == ("talk", 1, "Kind one")
    assert (made["context"], made["metadata"], made["description"]) == (
        {"tone": "kind"},
        {"team": "blue", "level": 3},
        "is kind",
    )
    assistant = made["assistant_id"]
    assert str(uuid.UUID(assistant)) == assistant
    assert made["config"] == {"configurable": {"tone": "kind"}}

    changed = await client.assistants.update(assistant, context={"tone": "rude"}, metadata={"level": 4})
    assert (changed["version"], changed["context"], changed["name"]) == (2, {"tone": "rude"}, "Kind one")
    assert changed["metadata"] == {"team": "blue", "level": 4}
    assert await client.assistants.get(assistant) == changed

    versions = await client.assistants.get_versions(assistant)
    assert [(v["version"], v["context"]) for v in versions] == [(2, {"tone": "rude"}), (1, {"tone": "kind"})]
    assert [v["version"] for v in await client.assistants.get_versions(assistant, metadata={"level": 3})] == [1]
    assert [v["version"] for v in await client.assistants.get_versions(assistant, limit=1, offset=1)] == [1]

    first = await client.assistants.set_latest(assistant, 1)
    assert (first["version"], first["context"]) == (1, {"tone": "kind"})
    assert (await client.assistants.update(assistant, name="Other"))["version"] == 3
    await client.assistants.delete(assistant)
    assert await http_status(client.assistants.get(assistant)) == 404


async def test_a_run_goes_by_its_assistant(client: LangGraphClient) -> None:
    kind = (await client.assistants.create("talk", context={"tone": "kind", "language": "French"}))["assistant_id"]
    assert await said(client, kind) == ["kind French"]
    assert await said(client, kind, context={"tone": "rude"}) == ["rude French"]
    assert await said(client, "talk", context={"tone": "plain"}) == ["plain None"]

    old = await client.assistants.create("talk", config={"configurable": {"tone": "old"}, "recursion_limit": 7})
    assert old["context"] == {"tone": "old"}
    assert await said(client, old["assistant_id"]) == ["old None"]
    assert await said(client, old["assistant_id"], config={"configurable": {"language": "Latin"}}) == ["old Latin"]

    await client.assistants.update(kind, context={"tone": "new"})
    assert await said(client, kind) == ["new None"]
    assert await http_status(client.runs.wait(None, str(uuid.uuid4()), input={})) == 422


async def test_runs_and_threads_name_their_assistant(client: LangGraphClient) -> None:
    made = await client.assistants.create("ask", context={"tone": "kind"})
    assistant = made["assistant_id"]
    thread = (await client.threads.create())["thread_id"]
    asked: Any = await client.runs.wait(thread, assistant, input={"said": []})
    assert asked["__interrupt__"][0]["value"] == "?"
    answered: Any = await client.runs.wait(thread, assistant, command={"resume": "yes"})
    assert answered["said"] == ["kind: yes"]
    assert {run["assistant_id"] for run in await client.runs.list(thread)} == {assistant}
    shown = await client.threads.get(thread)
    assert (shown["metadata"] or {})["assistant_id"] == assistant
    other = (await client.threads.create())["thread_id"]
    await client.runs.wait(other, "ask", input={"said": []})
    found = await client.threads.search(metadata={"assistant_id": assistant})
    assert [t["thread_id"] for t in found] == [thread]
    events = [part async for part in client.runs.stream(None, assistant, input={"said": []}, stream_mode="values")]
    assert events[-1].data["__interrupt__"][0]["value"] == "?"


async def test_assistants_are_found(client: LangGraphClient) -> None:
    for number, (graph, name) in enumerate([("talk", "Beta"), ("ask", "alpha"), ("talk", "Gamma ray")]):
        await client.assistants.create(graph, name=name, metadata={"n": number, "kind": "test"})

    async def names(**search: Any) -> list[str]:
        search = {"metadata": {"kind": "test"}, "limit": 100, **search}
        return [a["name"] for a in await client.assistants.search(**search)]

    assert await names() == ["Gamma ray", "alpha", "Beta"]
    assert await names(sort_order="asc") == ["Beta", "alpha", "Gamma ray"]
    assert await names(sort_by="name", sort_order="asc") == ["alpha", "Beta", "Gamma ray"]
    assert await names(graph_id="talk") == ["Gamma ray", "Beta"]
    assert await names(name="GAM") == ["Gamma ray"]
    assert await names(metadata={"n": 1}) == ["alpha"]
    assert await names(limit=1, offset=1) == ["alpha"]
    assert await client.assistants.count(metadata={"kind": "test"}) == 3
    assert await client.assistants.count(graph_id="talk") == 3
    page: Any = await client.assistants.search(metadata={"kind": "test"}, limit=2, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (2, "2")
    few: Any = await client.assistants.search(metadata={"kind": "test"}, limit=1, select=["assistant_id", "name"])
    assert set(few[0]) == {"assistant_id", "name"}
    # The default ones come as well, and those of both kinds have an order.
    everything = await client.assistants.search(limit=100)
    assert {a["graph_id"] for a in everything} == {"talk", "ask"}
    assert len(everything) == 5


async def test_what_can_not_be_kept_is_refused(client: LangGraphClient) -> None:
    wanted = str(uuid.uuid4())
    await client.assistants.create("talk", assistant_id=wanted, name="First")
    assert await http_status(client.assistants.create("talk", assistant_id=wanted)) == 409
    same = await client.assistants.create("talk", assistant_id=wanted, if_exists="do_nothing", name="Second")
    assert (same["name"], same["version"]) == ("First", 1)
    assert await http_status(client.assistants.create("nothing")) == 404
    assert await http_status(client.assistants.update(wanted, graph_id="nothing")) == 404
    assert await http_status(client.assistants.update(str(uuid.uuid4()), name="x")) == 404
    assert await http_status(client.assistants.set_latest(wanted, 9)) == 404
    assert await http_status(client.assistants.delete(str(uuid.uuid4()))) == 404
    default = (await client.assistants.get("talk"))["assistant_id"]
    assert await http_status(client.assistants.update(default, name="x")) == 409
    assert await http_status(client.assistants.delete(default)) == 409
    assert await http_status(client.assistants.delete("nothing")) == 404
    assert await http_status(client.assistants.create("talk", assistant_id=default)) == 409
    assert await client.assistants.create("talk", assistant_id=default, if_exists="do_nothing") == (
        await client.assistants.get("talk")
    )
    assert (await client.assistants.create("talk"))["name"] == "Untitled"


async def test_the_threads_of_an_assistant_go_with_it(client: LangGraphClient) -> None:
    threads = [(await client.threads.create())["thread_id"] for _ in range(4)]
    assistants = [(await client.assistants.create("ask", context={"tone": "x"}))["assistant_id"] for _ in range(2)]
    for thread, assistant in zip(threads, [assistants[0], assistants[0], assistants[1], "ask"], strict=True):
        await client.runs.wait(thread, assistant, input={"said": []})
    await client.assistants.delete(assistants[0], delete_threads=True)
    assert [await http_status(client.threads.get(thread)) for thread in threads] == [404, 404, 200, 200]
    await client.assistants.delete(assistants[1])
    assert await http_status(client.threads.get(threads[2])) == 200


async def test_threads_of_an_assistant_that_is_deleted_are_found(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    assistant = (await client.assistants.create("ask"))["assistant_id"]
    await client.runs.wait(thread, assistant, input={"said": []})
    await client.assistants.delete(assistant)
    for wanted in (assistant, assistant.upper()):
        found = await client.threads.search(metadata={"assistant_id": wanted})
        assert [t["thread_id"] for t in found] == [thread]
    assert await client.threads.count(metadata={"assistant_id": assistant}) == 1
    assert await client.threads.search(metadata={"assistant_id": assistant, "graph_id": "talk"}) == []
    assert await client.threads.search(metadata={"assistant_id": str(uuid.uuid4())}) == []


async def test_the_default_assistant_of_a_later_graph_has_its_id(client: LangGraphClient, address: str) -> None:
    name = f"later-{uuid.uuid4().hex[:8]}"
    wanted = str(uuid.uuid5(uuid.UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), name))
    await client.assistants.create("talk", assistant_id=wanted, name="Squatter", context={"tone": "x"})
    assert (await client.assistants.get(wanted))["name"] == "Squatter"
    later = StateGraph(State, context_schema=Context).add_node("node", talk).add_edge(START, "node")
    graph = later.compile(name=name, server=address)
    try:
        assert (await client.assistants.get(wanted))["graph_id"] == name
        assert await said(client, wanted, context={"language": "en"}) == ["None en"]
        searches: list[dict[str, Any]] = [{}, {"sort_by": "name"}, {"sort_order": "asc"}]
        for search in searches:
            found = await client.assistants.search(limit=100, **search)
            assert [a["graph_id"] for a in found if a["assistant_id"] == wanted] == [name]
        assert await client.assistants.count() == len(found)
        assert await client.assistants.count(name="Squatter") == 0
        assert await http_status(client.assistants.delete(wanted)) == 409
    finally:
        graph.detach()
        call_unary(server_at(address).stubs.registry.DeleteGraph, rs.DeleteGraphRequest(graph=name, force=True))


async def test_a_breakpoint_is_left_by_what_the_assistant_is_configured_with(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    assistant = (await client.assistants.create("talk", context={"tone": "dry"}))["assistant_id"]
    await client.runs.wait(
        thread, assistant, input={"said": []}, context={"language": "en"}, interrupt_before=["talking"]
    )
    await client.assistants.update(assistant, context={"tone": "wet"})
    # A request without a context has that of its assistant alone, as on LangGraph Server.
    assert await client.runs.wait(thread, assistant, input=None) == {"said": ["wet None"]}


async def test_pages_are_the_same_in_all_orders(client: LangGraphClient) -> None:
    for number in range(7):
        await client.assistants.create("talk", name=f"n{number % 3}", metadata={"n": number % 2})
    orders: list[dict[str, Any]] = [{}, {"sort_order": "asc"}, {"sort_by": "name"}, {"sort_by": "updated_at"}]
    for search in [*orders, {"metadata": {"n": 1}}]:
        everything: Any = await client.assistants.search(limit=100, **search)
        paged: list[Any] = []
        for offset in range(0, len(everything) + 2, 2):
            paged += await client.assistants.search(limit=2, offset=offset, **search)
        assert paged == everything
    assert await client.assistants.search(offset=50) == []
    assert await http_status(client.assistants.search(offset=100_001)) == 422


async def test_changes_at_once_are_all_kept(client: LangGraphClient) -> None:
    assistant = (await client.assistants.create("talk"))["assistant_id"]
    await asyncio.gather(*[client.assistants.update(assistant, metadata={f"key{i}": i}) for i in range(8)])
    kept = await client.assistants.get(assistant)
    assert (kept["version"], kept["metadata"]) == (9, {f"key{i}": i for i in range(8)})


async def test_metadata_keeps_what_it_is(client: LangGraphClient) -> None:
    made = await client.assistants.create("talk", metadata={"level": 3, "deep": {"a": [1]}, "team": "blue"})
    assistant = made["assistant_id"]
    changed = await client.assistants.update(assistant, metadata={"count": 5})
    assert changed["metadata"] == {"level": 3, "deep": {"a": [1]}, "team": "blue", "count": 5}
    changed = await client.assistants.update(assistant, metadata={"level": "3"})
    assert changed["metadata"] == {"level": "3", "deep": {"a": [1]}, "team": "blue", "count": 5}


async def test_schemas_and_graphs_of_an_assistant(client: LangGraphClient) -> None:
    assistant = (await client.assistants.create("talk"))["assistant_id"]
    assert (await client.assistants.get_schemas(assistant))["graph_id"] == "talk"
    drawing: Any = await client.assistants.get_graph(assistant)
    assert "talking" in [node["id"] for node in drawing["nodes"]]
