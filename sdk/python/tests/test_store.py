"""What graphd's stores do beside what programs for LangGraph see; those are in tests/functional."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import pytest

from graphd import START, InMemorySaver, MessagesState, StateGraph
from graphd.dev import DevServer
from graphd.messages import AIMessage
from graphd.prebuilt import InjectedStore, ToolNode
from graphd.store.base import BaseStore, InvalidNamespaceError, PutOp, SearchOp, TTLConfig
from graphd.store.memory import InMemoryStore


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(text.count("a")), float(text.count("b"))] for text in texts]


def test_an_item_keeps_the_time_of_its_creation() -> None:
    store = InMemoryStore()
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert first is not None and second is not None
    assert (second.created_at, second.value) == (first.created_at, {"n": 2})
    assert second.updated_at >= second.created_at
    assert second != first


def test_a_namespace_without_items_is_not_listed() -> None:
    store = InMemoryStore()
    store.put(("a", "b"), "k", {"n": 1})
    store.get(("never",), "k")
    assert store.list_namespaces() == [("a", "b")]
    store.delete(("a", "b"), "k")
    assert store.list_namespaces() == []


def test_items_with_the_same_text_are_found_both() -> None:
    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["text"]})
    store.batch([PutOp(("n",), "1", {"text": "a"}), PutOp(("n",), "2", {"text": "a"})])
    assert [(i.key, i.score) for i in store.search(("n",), query="a")] == [("1", 1.0), ("2", 1.0)]


def test_texts_that_an_item_has_no_more_are_forgotten() -> None:
    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["texts[*]"]})
    store.put(("n",), "1", {"texts": ["a", "b"]})
    store.put(("n",), "1", {"texts": ["b"]})
    assert [i.score for i in store.search(("n",), query="a")] == [0.0]


def test_items_without_a_vector_come_last_and_once() -> None:
    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["text"]})
    store.put(("n",), "plain", {"text": "a"}, index=False)
    store.put(("n",), "1", {"text": "a"})
    store.put(("n",), "2", {"text": "b"})
    pages = [store.search(("n",), query="a", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [[i.key for i in page] for page in pages] == [["1", "2"], ["plain"], []]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda s: s.put("abc", "k", {}), InvalidNamespaceError, "tuple of texts"),
        (lambda s: s.search("abc"), InvalidNamespaceError, "tuple of texts"),
        (lambda s: s.put(("a",), "k", "text"), TypeError, "the value of 'k' is 'text'"),
        (lambda s: s.search(("a",), limit=-1), ValueError, "limit is -1"),
        (lambda s: s.search(("a",), offset=-1), ValueError, "offset is -1"),
        (lambda s: s.batch([("get",)]), ValueError, "no operation of a store"),
        (lambda s: s.put(("a",), "k", {}, ttl=1), NotImplementedError, "leave ttl out"),
    ],
)
def test_wrong_calls_are_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(InMemoryStore())


@pytest.mark.parametrize(
    ("index", "error", "said"),
    [
        ({"dims": 2}, ValueError, "'embed'"),
        ({"dims": 2, "embed": 7}, TypeError, "embed"),
    ],
)
def test_a_wrong_index_is_refused(index: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        InMemoryStore(index=index)


def test_vectors_of_a_wrong_size_are_refused() -> None:
    store = InMemoryStore(index={"dims": 3, "embed": embed})
    with pytest.raises(ValueError, match="a vector of 2 numbers; index\\['dims'\\] is 3"):
        store.put(("a",), "k", {"x": "a"})
    with pytest.raises(ValueError, match="2 numbers"):
        store.search(("a",), query="a")
    short = InMemoryStore(index={"dims": 3, "embed": lambda texts: []})
    with pytest.raises(ValueError, match="0 vectors of 1 texts"):
        short.put(("a",), "k", {"x": "a"})


def test_a_store_needs_two_methods_only() -> None:
    class Listing(BaseStore):
        supports_ttl = True
        ttl_config: ClassVar[TTLConfig] = {"default_ttl": 5, "refresh_on_read": False}

        def batch(self, ops: Any) -> Any:
            return [[op] for op in ops]

        async def abatch(self, ops: Any) -> Any:
            return self.batch(ops)

    store = Listing()
    assert store.search(("a",), query="q") == [SearchOp(("a",), None, 10, 0, "q", False)]
    assert store.get(("a",), "k", refresh_ttl=True) == [(("a",), "k", True)]
    seen: list[Any] = []
    store.batch = lambda ops: seen.extend(ops) or [None]  # type: ignore[method-assign, assignment, func-returns-value]
    store.put(("a",), "k", {})
    store.put(("a",), "k", {}, ttl=None)
    store.put(("a",), "k", {}, ttl=1)
    assert [op.ttl for op in seen] == [5, None, 1]


def test_tools_are_given_the_store(server: DevServer) -> None:
    store = InMemoryStore()

    def remember(what: str, memory: Annotated[Any, InjectedStore]) -> str:
        """Remembers something."""
        memory.put(("facts",), what, {"n": 1})
        return f"{len(memory.search(('facts',)))} known"

    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([remember]))
    builder.add_edge(START, "tools")
    graph = builder.compile(InMemorySaver(server=server.address), name="store-tools", store=store)
    calls = [{"name": "remember", "args": {"what": "tea"}, "id": "1"}]
    state = graph.invoke(
        {"messages": [AIMessage("", id="a", tool_calls=calls)]}, {"configurable": {"thread_id": "store-tools-1"}}
    )
    assert state["messages"][-1].content == "1 known"
    assert [i.key for i in store.search(("facts",))] == ["tea"]


def test_stores_of_langgraph_work(server: DevServer) -> None:
    pytest.importorskip("langgraph.store.memory")
    theirs = importlib.import_module("langgraph.store.memory").InMemoryStore()
    base = importlib.import_module("langgraph.store.base")

    def node(state: MessagesState, runtime: Any) -> dict[str, Any]:
        runtime.store.put(("a",), "k", {"n": 1})
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="store-theirs", store=theirs)
    graph.invoke({"messages": []}, {"configurable": {"thread_id": "store-theirs-1"}})
    assert theirs.get(("a",), "k").value == {"n": 1}
    ours = InMemoryStore()
    ours.batch([base.PutOp(("a",), "k", {"n": 2})])
    assert ours.batch([base.GetOp(("a",), "k")])[0].value == {"n": 2}


def test_embeddings_of_langchain_work() -> None:
    embeddings = pytest.importorskip("langchain_core.embeddings")

    class Letters(embeddings.Embeddings):  # type: ignore[misc, name-defined]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embed(texts)

        def embed_query(self, text: str) -> list[float]:
            return embed([text])[0]

    store = InMemoryStore(index={"dims": 2, "embed": Letters(), "fields": ["text"]})
    store.put(("n",), "1", {"text": "a"})
    assert [(i.key, i.score) for i in store.search(("n",), query="aa")] == [("1", 1.0)]
    assert asyncio.run(store.asearch(("n",), query="b"))[0].score == 0.0


def test_it_works_without_langchain() -> None:
    program = """
import sys
for name in ("langgraph", "langchain", "langchain_core", "numpy"):
    sys.modules[name] = None
from graphd.store.memory import InMemoryStore
from graphd.func import entrypoint, task
store = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[float(len(t))] for t in texts]})
store.put(("a",), "k", {"x": "y"})
assert store.search(("a",), query="y")[0].score == 1.0
try:
    InMemoryStore(index={"dims": 1, "embed": "openai:small"})
except ValueError as error:
    assert "needs langchain" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)
