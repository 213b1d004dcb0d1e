"""What streams show where runs stop for people. The expected parts are those of LangGraph."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from graphd import START, StateGraph, interrupt
from graphd.dev import DevServer
from tests.langgraph_api.flows import new_thread
from tests.langgraph_api.server import find_url

pytestmark = pytest.mark.usefixtures("one_authority")


class Log(TypedDict, total=False):
    """What nodes have done."""

    log: Annotated[list[str], operator.add]


def work(state: Log) -> Log:
    return {"log": ["work"]}


def ask(state: Log) -> Log:
    return {"log": ["a=" + interrupt("a?")]}


def ask_too(state: Log) -> Log:
    return {"log": ["b=" + interrupt("b?")]}


def build_line() -> StateGraph:
    line = StateGraph(Log)
    line.add_sequence([work, ask])
    line.add_edge(START, "work")
    return line


def build_nested(inner: Any) -> StateGraph:
    outer = StateGraph(Log)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    return outer


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    beside = StateGraph(Log)
    for node in (ask, ask_too, work):
        beside.add_node(node)
        beside.add_edge(START, node.__name__)
    builders = {
        "line": build_line(),
        "beside": beside,
        "nested": build_nested(build_line().compile()),
        "deep": build_nested(build_nested(build_line().compile()).compile()),
        "kept nowhere": build_nested(build_line().compile(checkpointer=False)),
        "halted": build_nested(build_line().compile(interrupt_before=["ask"])),
    }
    store = f"sqlite:{tmp_path_factory.mktemp('store')}/graphd.db"
    with DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server:
        graphs = [builder.compile(server=server.address, name=name) for name, builder in builders.items()]
        for graph in graphs:
            graph.attach()
        yield find_url(server)
        for graph in graphs:
            graph.detach()


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made


async def read(parts: AsyncIterator[Any]) -> list[tuple[str, Any]]:
    """The parts of a stream, their namespaces without the ids of tasks."""
    shown = []
    async for part in parts:
        mode, *path = part.event.split("|")
        if mode != "metadata":
            shown.append(("|".join([mode, *(element.partition(":")[0] for element in path)]), part.data))
    return shown


async def stream(client: LangGraphClient, thread: str, graph: str, **asked: Any) -> list[tuple[str, Any]]:
    modes: Any = ["updates", "values"]
    return await read(client.runs.stream(thread, graph, stream_mode=modes, **asked))


START_OF_LINE: list[tuple[str, Any]] = [
    ("values", {"log": []}),
    ("updates", {"work": {"log": ["work"]}}),
    ("values", {"log": ["work"]}),
]
AT_BREAKPOINT: tuple[str, Any] = ("updates", {"__interrupt__": []})


@pytest.mark.parametrize("where", [{"interrupt_before": ["ask"]}, {"interrupt_after": ["work"]}])
async def test_a_breakpoint_shows(client: LangGraphClient, where: dict[str, Any]) -> None:
    thread = await new_thread(client)
    assert await stream(client, thread, "line", input={"log": []}, **where) == [*START_OF_LINE, AT_BREAKPOINT]
    (run,) = await client.runs.list(thread)
    joined = await read(client.runs.join_stream(thread, run["run_id"], last_event_id="-1"))
    assert joined == [*START_OF_LINE, AT_BREAKPOINT]


@pytest.mark.parametrize("subgraphs", [False, True])
async def test_a_breakpoint_of_a_subgraph_shows_in_the_root(client: LangGraphClient, subgraphs: bool) -> None:
    seen = await stream(client, await new_thread(client), "halted", input={"log": []}, stream_subgraphs=subgraphs)
    assert [part for part in seen if "__interrupt__" in part[1]] == [AT_BREAKPOINT]
    assert seen[-1] == AT_BREAKPOINT


async def test_what_finished_tasks_wrote_shows_after_the_questions(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    seen = await stream(client, thread, "beside", input={"log": []})
    asked: Any = (await client.threads.get_state(thread))["interrupts"]
    begun, stopped, done = [data for mode, data in seen if mode == "values"]
    assert (begun, done) == ({"log": []}, {"log": ["work"]})
    raised = stopped.pop("__interrupt__")
    assert stopped == {"log": []}
    assert sorted(q["value"] for q in raised) == ["a?", "b?"], "in the order in which they were asked"
    assert all(q in asked for q in raised)
    seen = await stream(client, thread, "beside", command={"resume": {asked[0]["id"]: "x"}})
    assert [data for mode, data in seen if mode == "values"] == [
        {"log": []},
        {"log": [], "__interrupt__": asked[1:]},
        {"log": ["a=x", "work"]},
    ]
    seen = await stream(client, thread, "beside", command={"resume": "y"})
    assert [data for mode, data in seen if mode == "values"] == [{"log": []}, {"log": ["a=x", "b=y", "work"]}]


@pytest.mark.parametrize(("graph", "paths"), [("nested", ["|inner"]), ("deep", ["|inner|inner", "|inner"])])
async def test_a_question_of_a_subgraph_shows_in_the_graphs_around_it(
    client: LangGraphClient, graph: str, paths: list[str]
) -> None:
    thread = await new_thread(client)
    seen = await stream(client, thread, graph, input={"log": []}, stream_subgraphs=True)
    asked = (await client.threads.get_state(thread))["interrupts"]
    at, *around = paths
    expected: list[tuple[str, Any]] = [
        ("updates" + at, {"__interrupt__": asked}),
        ("values" + at, {"log": ["work"], "__interrupt__": asked}),
    ]
    for path in (*around, ""):
        expected += [
            ("updates" + path, {"__interrupt__": asked}),
            ("values" + path, {"log": [], "__interrupt__": asked}),
        ]
    assert [part for part in seen if "__interrupt__" in part[1]] == expected


async def test_a_subgraph_without_checkpoints_shows_its_values(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    seen = await stream(client, thread, "kept nowhere", input={"log": []}, stream_subgraphs=True)
    asked = (await client.threads.get_state(thread))["interrupts"]
    values = [part for part in seen if part[0].startswith("values")]
    assert values == [
        ("values", {"log": []}),
        ("values|inner", {"log": []}),
        ("values|inner", {"log": ["work"]}),
        ("values|inner", {"log": ["work"], "__interrupt__": asked}),
        ("values", {"log": [], "__interrupt__": asked}),
    ]


async def test_an_update_beside_an_answer_shows_first(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "line", input={"log": []})
    seen = await stream(client, thread, "line", command={"resume": "x", "update": {"log": ["noted"]}})
    assert [data["log"] for mode, data in seen if mode == "values"] == [
        ["work", "noted"],
        ["work", "noted", "a=x"],
    ]


async def test_a_question_of_a_subgraph_shows_in_the_root_alone(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    seen = await stream(client, thread, "nested", input={"log": []})
    asked = (await client.threads.get_state(thread))["interrupts"]
    assert seen == [
        ("values", {"log": []}),
        ("updates", {"__interrupt__": asked}),
        ("values", {"log": [], "__interrupt__": asked}),
    ]
