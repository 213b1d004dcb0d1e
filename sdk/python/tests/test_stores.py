"""What all stores do alike: InMemoryStore, and GraphdStore on each store of a server, by plain and by async calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from graphd.dev import DevServer
from graphd.store.base import BaseStore, GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from graphd.store.memory import InMemoryStore
from graphd.store.server import GraphdStore
from tests.langgraph_api.server import open_store


@pytest.fixture(scope="module", params=["process", "memory", "sqlite", "redis"])
def new_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Any]]:
    """Makes empty stores."""
    if request.param == "process":
        yield InMemoryStore
        return
    with open_store(request.param, tmp_path_factory.mktemp("store")) as store, DevServer(store=store) as server:

        def empty() -> GraphdStore:
            made = GraphdStore(server.address)
            found = made.search((), limit=1000)
            made.batch([PutOp(item.namespace, item.key, None) for item in found])
            return made

        yield empty


class Plain:
    """A store by its plain methods, as coroutines."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*given: Any, **named: Any) -> Any:
            return await asyncio.to_thread(method, *given, **named)

        return call


class Async:
    """A store by its async methods."""

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, "a" + name)


@pytest.fixture(params=[Plain, Async])
def store(request: pytest.FixtureRequest, new_store: Callable[[], Any]) -> Any:
    return request.param(new_store())


def keys_of(found: list[Any]) -> set[str]:
    return {item.key for item in found}


async def test_an_item_is_put_read_and_deleted(store: Any) -> None:
    value = {"n": 1.5, "big": 1 << 60, "text": "é\n", "deep": {"list": [None, True, {}]}}
    before = datetime.now(timezone.utc)
    assert await store.put(("users", "ann"), "k", value) is None
    item = await store.get(("users", "ann"), "k")
    assert (item.namespace, item.key, item.value) == (("users", "ann"), "k", value)
    assert abs((item.created_at - before).total_seconds()) < 60
    await store.put(("users", "ann"), "k", {"n": 2})
    again = await store.get(("users", "ann"), "k")
    assert (again.value, again.created_at) == ({"n": 2}, item.created_at)
    assert again.updated_at >= item.updated_at
    assert await store.get(("users", "ann"), "other") is None
    assert await store.get(("users",), "k") is None
    await store.delete(("users", "ann"), "k")
    await store.delete(("users", "ann"), "k")
    assert await store.get(("users", "ann"), "k") is None
    await store.put(("users", "ann"), 7, {"n": 7})
    assert (await store.get(("users", "ann"), "7")).value == {"n": 7}


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (None, {"a", "b", "c"}),
        ({}, {"a", "b", "c"}),
        ({"n": 1}, {"a"}),
        ({"n": 1.0}, {"a"}),
        ({"n": {"$eq": 2}}, {"b"}),
        ({"n": {"$ne": 2}}, {"a", "c"}),
        ({"n": {"$gt": 1, "$lte": 3}}, {"b", "c"}),
        ({"n": {"$gte": 2}, "kind": "cat"}, {"c"}),
        ({"n": {"$lt": 2}}, {"a"}),
        ({"tags": ["x", {"deep": 1}]}, {"a"}),
        ({"tags": ["x"]}, set()),
        ({"in": {"n": 2}}, {"b"}),
        ({"in": {"n": {"$gte": 2}}}, {"b", "c"}),
        ({"in": {"n": 2, "text": None}}, {"b"}),
        ({"gone": None}, {"a", "b", "c"}),
        ({"gone": {"$ne": 1}}, {"a", "b", "c"}),
        ({"gone": 1}, set()),
    ],
)
async def test_filters(store: Any, wanted: Any, keys: set[str]) -> None:
    for n, (key, kind) in enumerate((("a", "cat"), ("b", "dog"), ("c", "cat")), start=1):
        value = {"n": n, "kind": kind, "in": {"n": n}, "tags": ["x", {"deep": n}]}
        await store.put(("pets", kind), key, value)
    await store.put(("petshop",), "d", {"n": 1})
    assert keys_of(await store.search(("pets",), filter=wanted)) == keys


async def test_pages_of_a_search_have_each_item_once(store: Any) -> None:
    for n in range(7):
        await store.put(("a", str(n % 2)), f"k{n}", {"even": n % 2 == 0})
    for wanted, count in ((None, 7), ({"even": True}, 4)):
        pages = [await store.search(("a",), filter=wanted, limit=3, offset=at) for at in range(0, 9, 3)]
        assert [len(page) for page in pages] == [3, count - 3 if count < 6 else 3, max(0, count - 6)]
        keys = [item.key for page in pages for item in page]
        assert len(keys) == len(set(keys)) == count
    assert len(await store.search(())) == 7
    assert await store.search(("a",), limit=0) == []
    found = (await store.search(("a", "1"), limit=1))[0]
    assert found.score is None and found.namespace == ("a", "1")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, [("a",), ("a", "x", "1"), ("a", "y"), ("b", "x")]),
        ({"prefix": ("a",)}, [("a",), ("a", "x", "1"), ("a", "y")]),
        ({"prefix": ("*", "x")}, [("a", "x", "1"), ("b", "x")]),
        ({"prefix": ("a", "*", "1")}, [("a", "x", "1")]),
        ({"suffix": ("x",)}, [("b", "x")]),
        ({"suffix": ("x", "*")}, [("a", "x", "1")]),
        ({"prefix": ("a",), "suffix": ("y",), "max_depth": 1}, [("a",)]),
        ({"max_depth": 2}, [("a",), ("a", "x"), ("a", "y"), ("b", "x")]),
        ({"prefix": ("b",), "max_depth": 1 << 40}, [("b", "x")]),
        ({"limit": 2, "offset": 1}, [("a", "x", "1"), ("a", "y")]),
        ({"limit": 0}, []),
    ],
)
async def test_namespaces(store: Any, given: Any, wanted: list[tuple[str, ...]]) -> None:
    for namespace in (("b", "x"), ("a", "x", "1"), ("a", "y"), ("a",)):
        await store.put(namespace, "k", {})
    assert await store.list_namespaces(**given) == wanted


async def test_a_batch_reads_what_was_there_before(store: Any) -> None:
    await store.put(("a",), "k", {"n": 1})
    ops = [
        PutOp(("a",), "k", {"n": 2}),
        GetOp(("a",), "k"),
        PutOp(("a",), "k", {"n": 3}),
        PutOp(("a",), "new", {"n": 4}),
        GetOp(("a",), "new"),
        SearchOp(("a",)),
        ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
        PutOp(("a",), "never", {}),
        PutOp(("a",), "never", None),
    ]
    results = await store.batch(ops)
    assert (results[1].value, results[4], keys_of(results[5]), results[6]) == ({"n": 1}, None, {"k"}, [("a",)])
    assert [results[n] for n in (0, 2, 3, 7, 8)] == [None] * 5
    assert (await store.get(("a",), "k")).value == {"n": 3}
    assert keys_of(await store.search(("a",))) == {"k", "new"}
    many = await store.batch([PutOp(("many",), f"{n}", {"n": n}) for n in range(100)])
    assert many == [None] * 100
    assert len(await store.search(("many",), limit=1000)) == 100
    assert await store.batch([]) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.put("abc", "k", {}), InvalidNamespaceError),
        (lambda s: s.put((), "k", {}), InvalidNamespaceError),
        (lambda s: s.put(("langgraph",), "k", {}), InvalidNamespaceError),
        (lambda s: s.put(("a.b",), "k", {}), InvalidNamespaceError),
        (lambda s: s.get(("",), "k"), InvalidNamespaceError),
        (lambda s: s.search("abc"), InvalidNamespaceError),
        (lambda s: s.put(("a",), "k", "text"), TypeError),
        (lambda s: s.search(("a",), limit=-1), ValueError),
        (lambda s: s.search(("a",), offset=-1), ValueError),
        (lambda s: s.search(("a",), filter={"n": {"$in": [1]}}), ValueError),
        (lambda s: s.batch([("get",)]), ValueError),
        (lambda s: s.batch([PutOp(("a",), "k", {}), ("get",)]), ValueError),
        (lambda s: s.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))]), ValueError),  # type: ignore[arg-type]
    ],
)
async def test_wrong_calls_are_refused(store: Any, call: Any, error: type[Exception]) -> None:
    await store.put(("a",), "there", {"n": 1})
    with pytest.raises(error):
        await call(store)
    assert keys_of(await store.search(())) == {"there"}, "nothing was done"
