"""What GraphdStore does beside what all stores do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, MessagesState, StateGraph, interrupt
from graphd.config import get_store
from graphd.dev import DevServer
from graphd.errors import CallTimeoutError, GraphdError, LimitExceededError
from graphd.messages import AIMessage
from graphd.prebuilt import InjectedStore, ToolNode
from graphd.runtime import Runtime
from graphd.store.base import ListNamespacesOp, MatchCondition, PutOp
from graphd.store.server import GraphdStore
from graphd.types import Command


class State(TypedDict, total=False):
    who: str
    fact: str
    known: list[str]


@pytest.fixture
def store(server: DevServer) -> GraphdStore:
    return GraphdStore(server.address)


def test_nodes_keep_items_across_threads_and_workers(server: DevServer) -> None:
    def remember(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        store = runtime.store
        assert store is not None
        store.put(("facts", state["who"]), state["fact"], {"n": 1})
        answer = interrupt("more?")
        return {"known": [*sorted(item.key for item in get_store().search(("facts", state["who"]))), answer]}

    def build() -> Any:
        builder = StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        return builder.compile(server=server.address, store=GraphdStore(server.address))

    for fact, known in (("likes tea", ["likes tea"]), ("is tall", ["is tall", "likes tea"])):
        graph = build()
        config = {"configurable": {"thread_id": fact}}
        graph.invoke({"who": "ann", "fact": fact}, config)
        assert graph.invoke(Command(resume="no"), config)["known"] == [*known, "no"]
        graph.detach()
    assert len(GraphdStore(server.address).search(("facts",))) == 2


async def test_async_nodes_use_the_async_methods(server: DevServer, store: GraphdStore) -> None:
    async def remember(state: MessagesState) -> dict[str, Any]:
        await get_store().aput(("async",), "k", {"n": 1})
        found = await get_store().asearch(("async",))
        return {"messages": [AIMessage(f"{found[0].value['n']}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("remember", remember)
    builder.add_edge(START, "remember")
    graph = builder.compile(server=server.address, store=store)
    result = await graph.ainvoke({"messages": []})
    assert result["messages"][-1].content == "1"
    graph.detach()


def test_tools_are_given_the_store(server: DevServer, store: GraphdStore) -> None:
    def remember(what: str, memory: Annotated[Any, InjectedStore]) -> str:
        """Remembers something."""
        memory.put(("tools",), what, {"n": 1})
        return f"{len(memory.search(('tools',)))} known"

    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([remember]))
    builder.add_edge(START, "tools")
    graph = builder.compile(server=server.address, store=store)
    call = {"name": "remember", "args": {"what": "tea"}, "id": "1", "type": "tool_call"}
    result = graph.invoke({"messages": [AIMessage("", tool_calls=[call])]})
    assert result["messages"][-1].content == "1 known"
    graph.detach()


def test_items_expire(store: GraphdStore) -> None:
    store.put(("short",), "k", {}, ttl=0.0005)
    while store.get(("short",), "k", refresh_ttl=False) is not None:
        pass
    lasting = GraphdStore(store.address, ttl={"default_ttl": 0.0005, "refresh_on_read": False})
    lasting.put(("short",), "default", {})
    lasting.put(("short",), "kept", {}, ttl=None)
    while lasting.get(("short",), "default") is not None:
        pass
    assert [item.key for item in lasting.search(("short",))] == ["kept"]


def test_items_survive_the_server(tmp_path: Path) -> None:
    kept = f"sqlite:{tmp_path}/graphd.db"
    with DevServer(store=kept) as first:
        store = GraphdStore(first.address)
        store.put(("a",), "k", {"n": 1})
        first.process.kill()
        first.process.wait()
        with DevServer(store=kept, port=first.port):
            item = store.get(("a",), "k")  # the same store goes on
            assert item is not None and item.value == {"n": 1}


async def test_one_store_serves_several_loops_and_threads(store: GraphdStore) -> None:
    def use(n: int) -> None:
        asyncio.run(store.aput(("loops",), f"a{n}", {"n": n}))
        store.put(("loops",), f"p{n}", {"n": n})

    await asyncio.gather(*(asyncio.to_thread(use, n) for n in range(8)))
    assert len(await store.asearch(("loops",), limit=100)) == 16


def test_values_are_plain_json(store: GraphdStore) -> None:
    store.put(("plain",), "k", {"when": Path("a/b"), "set": {2, 1}, "message": AIMessage("hi")})
    item = store.get(("plain",), "k")
    assert item is not None
    assert (item.value["when"], item.value["set"], item.value["message"]["content"]) == ("a/b", [1, 2], "hi")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda s: s.search(("a",), query="tea"), NotImplementedError, "no index by meaning"),
        (lambda s: s.list_namespaces(max_depth=0), ValueError, "max_depth is 0"),
        (lambda s: s.put(("a",), "k", {}, ttl="soon"), ValueError, "ttl is 'soon'"),
        (lambda s: s.put(("a",), "k", {}, ttl=-1), GraphdError, "ttl: is negative"),
        (lambda s: s.put(("a",), "", {}), GraphdError, "key: must be set"),
        (lambda s: s.put(("a",), "k", {"n": float("nan")}), ValueError, "Out of range float"),
        (lambda s: s.put(("a",), "k", {"n": object()}), TypeError, "no JSON form"),
        (lambda s: s.put(("a",), "k", {"text": "x" * (1 << 20)}), GraphdError, "1048576"),
        (
            lambda s: s.batch([ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("b",))))]),
            ValueError,
            "2 conditions on the prefix",
        ),
        (lambda s: s.batch([PutOp(("never",), "k", {}), PutOp(("a",), "k", {"n": object()})]), TypeError, "no JSON"),
    ],
)
def test_wrong_calls_are_refused(store: GraphdStore, call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(store)
    assert store.search(("never",)) == []


def test_texts_are_compared_and_other_values_are_not_found(store: GraphdStore) -> None:
    for key, day in (("a", "2026-01-02"), ("b", "2026-03-01"), ("c", 7)):
        store.put(("days",), key, {"day": day})
    assert [item.key for item in store.search(("days",), filter={"day": {"$gte": "2026-02"}})] == ["b"]
    assert [item.key for item in store.search(("days",))] == ["c", "b", "a"]


def test_a_search_that_is_too_broad_is_refused() -> None:
    with DevServer(flags=["--items-searched", "2"]) as server:
        store = GraphdStore(server.address)
        store.batch([PutOp(("a", f"{n}"), "k", {"n": n}) for n in range(3)])
        assert len(store.search(("a",), limit=2)) == 2
        with pytest.raises(LimitExceededError, match="a longer prefix of the namespace"):
            store.search(("a",), filter={"n": 7})
        assert store.search(("a", "1"), filter={"n": 7}) == []


def test_without_a_server_there_is_a_local_one(monkeypatch: pytest.MonkeyPatch, server: DevServer) -> None:
    monkeypatch.delenv("GRAPHD_SERVER", raising=False)
    monkeypatch.setattr("graphd.server_choice.shared_dev_server", lambda: server)
    with GraphdStore() as store:
        assert store.address == server.address
        store.put(("local",), "k", {})
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    assert GraphdStore().get(("local",), "k") is not None
    with GraphdStore.from_conn_string("127.0.0.1:1") as none, pytest.raises(CallTimeoutError):
        GraphdStore(none.address, timeout=5).get(("a",), "k")
