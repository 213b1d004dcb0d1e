"""Graphs of one builder in one process: a run takes the cache and the store of the graph that was called."""

from __future__ import annotations

from typing import Any, TypedDict

from graphd.cache.memory import InMemoryCache
from graphd.config import get_store
from graphd.dev import DevServer
from graphd.graph import START, StateGraph
from graphd.types import CachePolicy


class State(TypedDict, total=False):
    found: str


def test_a_run_takes_cache_and_store_of_the_called_graph(server: DevServer) -> None:
    ran: list[str] = []

    def find(state: State) -> State:
        ran.append(get_store()["name"])
        return {"found": ran[-1]}

    builder = StateGraph(State).add_node("find", find, cache_policy=CachePolicy()).add_edge(START, "find")
    location: dict[str, Any] = {"server": server.address, "name": "two-compiles"}
    cached = builder.compile(**location, cache=InMemoryCache(), store={"name": "first"})
    plain = builder.compile(**location, store={"name": "second"})
    plain.attach().session.close()  # the session of the other graph gets all tasks

    def invoke(graph: Any, thread: str) -> Any:
        return graph.invoke({"found": ""}, {"configurable": {"thread_id": thread}})["found"]

    assert [invoke(cached, "c-1"), invoke(cached, "c-2")] == ["first", "first"]
    assert [invoke(plain, "p-1"), invoke(plain, "p-2")] == ["second", "second"]
    assert ran == ["first", "second", "second"]
