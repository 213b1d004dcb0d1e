"""The store of the API of LangGraph Server: values under namespaces and keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient

from graphd.dev import DevServer
from tests.langgraph_api.notes import http_status
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")


@pytest.fixture(scope="module", params=["memory", "sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=["--langgraph", "127.0.0.1:0", "--items-searched", "50"]) as server,
    ):
        yield find_url(server)


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made
        found = (await made.store.search_items([], limit=50))["items"]
        for item in found:
            await made.store.delete_item(item["namespace"], item["key"])


def keys_of(found: Any) -> list[str]:
    return [item["key"] for item in found["items"]]


async def test_an_item_is_put_read_and_deleted(client: LangGraphClient) -> None:
    value = {"n": 1.5, "big": 9007199254740993, "text": "é\u2028<b>", "deep": {"list": [None, True]}}
    await client.store.put_item(["users", "ann"], "k/1?&", value)
    first = await client.store.get_item(["users", "ann"], "k/1?&")
    assert (first["namespace"], first["key"], first["value"]) == (["users", "ann"], "k/1?&", value)
    created = datetime.fromisoformat(first["created_at"].replace("Z", "+00:00"))
    assert created.tzinfo is not None and first["created_at"] == first["updated_at"]

    await client.store.put_item(["users", "ann"], "k/1?&", {"n": 2}, index=False)
    second = await client.store.get_item(["users", "ann"], "k/1?&")
    assert second["value"] == {"n": 2}
    assert second["created_at"] == first["created_at"] and second["updated_at"] > first["updated_at"]

    assert await client.store.get_item(["users", "ann"], "other") is None
    assert await client.store.get_item(["users"], "k/1?&") is None
    await client.store.delete_item(["users", "ann"], "k/1?&")
    await client.store.delete_item(["users", "ann"], "k/1?&")
    assert await client.store.get_item(["users", "ann"], "k/1?&") is None


def test_the_synchronous_client(url: str) -> None:
    with get_sync_client(url=url, api_key=None) as client:
        client.store.put_item(["sync"], key="k", value={"n": 1}, ttl=5)
        assert client.store.get_item(["sync"], "k", refresh_ttl=False)["value"] == {"n": 1}
        assert keys_of(client.store.search_items(["sync"])) == ["k"]
        assert client.store.list_namespaces(prefix=["sync"]) == {"namespaces": [["sync"]]}
        client.store.delete_item(["sync"], key="k")


async def test_items_are_found(client: LangGraphClient) -> None:
    for at, kind in enumerate(["cat", "dog", "cat", "bird"]):
        await client.store.put_item(["pets", kind], f"p{at}", {"kind": kind, "age": at, "tags": {"a": at}})
    await client.store.put_item(["petshop"], "other", {"kind": "cat"})
    for fields, keys in (
        ({}, ["p3", "p2", "p1", "p0"]),
        ({"limit": 2}, ["p3", "p2"]),
        ({"limit": 2, "offset": 3}, ["p0"]),
        ({"filter": {"kind": "cat"}}, ["p2", "p0"]),
        ({"filter": {"age": {"$gte": 1, "$lt": 3}}}, ["p2", "p1"]),
        ({"filter": {"kind": {"$ne": "cat"}, "tags": {"a": 3}}}, ["p3"]),
        ({"filter": {"kind": {"$gt": "bird", "$lte": "cat"}}, "refresh_ttl": False}, ["p2", "p0"]),
        ({"filter": {"kind": "fish"}}, []),
    ):
        assert keys_of(await client.store.search_items(["pets"], **fields)) == keys, fields
    found = (await client.store.search_items(["pets", "bird"]))["items"]
    assert (found[0]["value"], found[0]["score"]) == ({"kind": "bird", "age": 3, "tags": {"a": 3}}, None)
    assert keys_of(await client.store.search_items([])) == ["other", "p3", "p2", "p1", "p0"]


async def test_namespaces_are_listed(client: LangGraphClient) -> None:
    for namespace in (["a"], ["a", "x", "1"], ["a", "y"], ["b", "x"]):
        await client.store.put_item(namespace, "k", {})
    for fields, wanted in (
        ({}, ["a", "a/x/1", "a/y", "b/x"]),
        ({"prefix": ["a"]}, ["a", "a/x/1", "a/y"]),
        ({"prefix": ["*", "x"]}, ["a/x/1", "b/x"]),
        ({"suffix": ["x"]}, ["b/x"]),
        ({"max_depth": 1}, ["a", "b"]),
        ({"limit": 1, "offset": 1}, ["a/x/1"]),
    ):
        found = await client.store.list_namespaces(**fields)  # type: ignore[arg-type]
        assert ["/".join(labels) for labels in found["namespaces"]] == wanted, fields


async def test_an_item_expires(client: LangGraphClient) -> None:
    await client.store.put_item(["short"], "k", {}, ttl=0.0005)  # type: ignore[arg-type]  # minutes
    await client.store.put_item(["short"], "kept", {}, ttl=5)
    while await client.store.get_item(["short"], "k", refresh_ttl=False) is not None:
        await asyncio.sleep(0.01)
    assert keys_of(await client.store.search_items(["short"])) == ["kept"]


async def test_puts_at_once_follow_one_another(client: LangGraphClient) -> None:
    await asyncio.gather(*(client.store.put_item(["race"], "k", {"by": n}) for n in range(20)))
    item = await client.store.get_item(["race"], "k")
    assert item["value"]["by"] in range(20)
    assert keys_of(await client.store.search_items(["race"])) == ["k"]


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PUT", "items", {"key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": [], "key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": "a", "key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": ["a", 1], "key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": ["a.b"], "key": "k", "value": {}}, "namespace[0]"),
        ("PUT", "items", {"namespace": ["a", ""], "key": "k", "value": {}}, "namespace[1]"),
        ("PUT", "items", {"namespace": ["langgraph"], "key": "k", "value": {}}, "namespace"),
        ("PUT", "items", {"namespace": ["a"], "key": "", "value": {}}, "key"),
        ("PUT", "items", {"namespace": ["a"], "key": 7, "value": {}}, "key"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": [1]}, "value"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": None}, "value"),
        ("PUT", "items", {"namespace": ["a"], "key": "k"}, "value"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "index": True}, "index"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "ttl": 0}, "ttl"),
        ("PUT", "items", {"namespace": ["a"], "key": "k", "value": {}, "ttl": 1e300}, "ttl"),
        ("GET", "items?namespace=a", None, "key"),
        ("GET", "items?key=k", None, "namespace[0]"),
        ("GET", "items?namespace=a..b&key=k", None, "namespace[1]"),
        ("GET", "items?namespace=a&key=k&refresh_ttl=so", None, "refresh_ttl"),
        ("DELETE", "items", {"namespace": ["a"]}, "key"),
        ("POST", "items/search", {"namespace_prefix": ["a."]}, "namespace_prefix[0]"),
        ("POST", "items/search", {"filter": {"a": {"$in": [1]}}}, "filter.a"),
        ("POST", "items/search", {"filter": [1]}, "filter"),
        ("POST", "items/search", {"limit": -1}, "limit"),
        ("POST", "items/search", {"offset": 1e6}, "offset"),
        ("POST", "items/search", {"query": "what she likes"}, "query"),
        ("POST", "namespaces", {"prefix": [""]}, "prefix[0]"),
        ("POST", "namespaces", {"max_depth": 0}, "max_depth"),
        ("POST", "namespaces", {"limit": 0}, "limit"),
    ],
)
async def test_wrong_requests_are_refused(url: str, method: str, path: str, body: Any, field: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.request(method, f"/store/{path}", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field, answer.text
    assert len(answer.json()["detail"]) > 10


async def test_limits(client: LangGraphClient, url: str) -> None:
    assert await http_status(client.store.put_item(["a"], "k", {"text": "x" * (1 << 20)})) == 413
    for at in range(51):
        await client.store.put_item(["many"], f"{at}", {"n": at})
    assert len((await client.store.search_items(["many"], limit=50))["items"]) == 50
    assert keys_of(await client.store.search_items(["many"], offset=50)) == ["0"]
    assert await http_status(client.store.list_namespaces()) == 422
    async with httpx.AsyncClient(base_url=url) as http:
        asked = {"namespace_prefix": ["many"], "filter": {"n": -1}}
        answer = await http.post("/store/items/search", json=asked)
        assert (answer.status_code, answer.json()["reason"]) == (422, "ITEM_SEARCH_TOO_BROAD")
        assert (await http.get("/info")).json()["flags"]["store"] is True
    for at in range(51):
        await client.store.delete_item(["many"], f"{at}")


async def test_items_survive_the_server(tmp_path: Any) -> None:
    store = f"sqlite:{tmp_path}/graphd.db"
    for round_ in range(2):
        server = await asyncio.to_thread(DevServer, store=store, flags=["--langgraph", "127.0.0.1:0"])
        async with get_client(url=find_url(server), api_key=None) as client:
            if round_ == 0:
                await client.store.put_item(["a"], "k", {"n": 1})
            else:
                assert (await client.store.get_item(["a"], "k"))["value"] == {"n": 1}
        server.process.kill()
        await asyncio.to_thread(server.process.wait)
        server.close()
