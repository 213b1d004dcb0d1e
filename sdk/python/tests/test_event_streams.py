"""astream_events and astream_log, which LangChain makes of callbacks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from graphd.dev import DevServer

from .callback_programs import ON_LOOPS, PROGRAMS, Library, State

pytest.importorskip("langgraph")
runnables = pytest.importorskip("langchain_core.runnables")

_COUNTER = itertools.count()
_ID = re.compile(r":[0-9a-f-]{32,36}")
# LangChain calls with a recursion_limit of its own.
COMPARED = [name for name in ON_LOOPS if name != "failed_after_a_graph"]
UNORDERED = {"decisions_beside_edges", "joins", "sends", "wrong_update"}


def shown_values(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shown_values(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown_values(one) for one in value]
    if hasattr(value, "content"):
        return [type(value).__name__, value.content]
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


async def read_events(graph: Any, given: Any, config: Any) -> list[Any]:
    """What astream_events yields, with names in the place of ids."""
    found: list[Any] = []
    names: dict[str, str] = {}
    with contextlib.suppress(Exception):
        async for event in graph.astream_events(given, config, version="v2"):
            names.setdefault(event["run_id"], event["name"])
            parents = [names[parent] for parent in event["parent_ids"]]
            about = [event["event"], event["name"], parents, sorted(set(event["tags"]))]
            found.append([*about, event["metadata"].get("langgraph_step"), shown_values(event["data"])])
    return found


def record(root: str, server: str, name: str) -> list[Any]:
    thread, found = f"events-{next(_COUNTER)}", []

    def call(graph: Any, given: Any) -> None:
        config = {"configurable": {"thread_id": thread}, "tags": ["tagged"]}
        found.extend(asyncio.run(read_events(graph, given, config)))

    with contextlib.closing(Library(root, server)) as lib:
        PROGRAMS[name](lib, call)
    return sorted(found, key=repr) if name in UNORDERED else found


@pytest.mark.parametrize("name", COMPARED)
def test_events_are_those_of_langgraph(server: DevServer, name: str) -> None:
    here, there = record("graphd", server.address, name), record("langgraph", server.address, name)
    shown, expected = ([event[:3] for event in events if not is_item(event)] for events in (here, there))
    assert shown == expected
    assert [event for event in here if not is_item(event)] == [event for event in there if not is_item(event)]
    if name != "failing_decision":  # LangGraph shows the update of a node whose conditional edge fails
        assert [event for event in here if is_item(event)] == [event for event in there if is_item(event)]


def is_item(event: list[Any]) -> bool:
    """What astream yields; the next node may have begun by then."""
    return event[0] == "on_chain_stream" and not event[2]


def build_talking(lib: Library) -> Any:
    model = lib.fake_model("hello there", "hello there")

    async def talk(state: State, config) -> Any:  # type: ignore[no-untyped-def]
        return {"log": [(await model.ainvoke("hi", config)).content]}

    return lib.graph(talk, edges=">talk").compile(name="Talking")


async def read_log(graph: Any) -> list[Any]:
    stream = graph.astream_log({"n": 1}, include_names=["talk", "GenericFakeChatModel"])
    return [[op["op"], op["path"]] async for patch in stream for op in patch.ops]


def record_talk(root: str, server: DevServer, read: Callable[[Any], Any]) -> Any:
    """What a coroutine function reads of a graph that talks."""
    with contextlib.closing(Library(root, server.address)) as lib:
        return asyncio.run(read(build_talking(lib)))


@pytest.mark.filterwarnings("ignore:astream_log is deprecated")
def test_logs_are_those_of_langgraph(server: DevServer) -> None:
    here, there = (record_talk(root, server, read_log) for root in ("graphd", "langgraph"))
    assert here == there
    assert ["add", "/logs/talk/streamed_output/-"] in here


def test_events_of_a_model_are_its_tokens(server: DevServer) -> None:
    events = record_talk("graphd", server, lambda graph: read_events(graph, {"n": 1}, {}))
    chunks = [event[-1]["chunk"] for event in events if event[0] == "on_chat_model_stream"]
    assert "".join(content for _, content in chunks) == "hello there"
    assert [event[2] for event in events if event[0] == "on_chat_model_start"] == [["Talking", "talk"]]


def test_events_of_a_chain_have_those_of_its_graph(server: DevServer) -> None:
    def read(graph: Any) -> Any:
        return read_events(graph | runnables.RunnableLambda(lambda update: list(update)), {"n": 1}, {})

    assert record_talk("graphd", server, read) == record_talk("langgraph", server, read)


def test_other_versions_of_events_are_refused(server: DevServer) -> None:
    with contextlib.closing(Library("graphd", server.address)) as lib:
        graph = build_talking(lib)
        with pytest.raises(NotImplementedError, match="v3"):
            graph.stream_events({"n": 1}, version="v3")
        with pytest.raises(NotImplementedError, match="astream_events"):
            graph.stream_events({"n": 1})


def test_without_langchain_there_are_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(importlib.import_module("sys").modules, "langchain_core.runnables.base", None)
    graph = importlib.import_module("graphd.graph").StateGraph(State).add_node("one", dict)
    compiled = graph.add_edge("__start__", "one").compile()
    errors = importlib.import_module("graphd.errors")
    with pytest.raises(errors.MissingPackageError, match=r"astream_events\(\) needs langchain-core"):
        compiled.astream_events({"n": 1}, version="v2")
