"""Searches for threads: pages after an offset and counts, which an index answers or not."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import graphd
from graphd.dev import DevServer
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")

COUNT = 40


@pytest.fixture(scope="module", params=["memory", "sqlite", "redis"])
def search(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with threads of this API, the newest last, and others that it does not show."""
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=["--langgraph", "127.0.0.1:0"]) as server,
        httpx.Client(base_url=find_url(server), timeout=60) as http,
    ):
        client = graphd.Client(server.address)
        for n in range(COUNT):
            client.threads.create(f"order-{n}", metadata={"team": "a"})
            client.threads.create(str(uuid.UUID(int=n)), metadata={"team": "a", "half": n % 2, "third": f"t{n % 3}"})
        yield http


def numbers_of(found: httpx.Response) -> list[int]:
    """The numbers of the threads of an answer."""
    assert found.status_code == 200, found.text
    return [uuid.UUID(thread["thread_id"]).int for thread in found.json()]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, lambda _: True),
        ({"status": "idle"}, lambda _: True),
        ({"status": "busy"}, lambda _: False),
        ({"metadata": {"team": "a"}}, lambda _: True),
        ({"metadata": {"team": "a", "third": "t1"}, "status": "idle"}, lambda n: n % 3 == 1),
        ({"metadata": {"half": 1}}, lambda n: n % 2 == 1),
        ({"metadata": {"half": "1"}}, lambda _: False),
        ({"metadata": {"half": 1, "third": "t2"}}, lambda n: n % 2 == 1 and n % 3 == 2),
    ],
)
def test_pages_join_to_what_a_search_finds(search: httpx.Client, asked: dict[str, Any], wanted: Any) -> None:
    want = [n for n in reversed(range(COUNT)) if wanted(n)]
    assert numbers_of(search.post("/threads/search", json={**asked, "limit": 1000})) == want
    assert search.post("/threads/count", json=asked).json() == len(want)
    for limit in (1, 7):
        pages: list[int] = []
        offset = 0
        while page := numbers_of(search.post("/threads/search", json={**asked, "limit": limit, "offset": offset})):
            pages += page
            offset += limit
        assert pages == want


def test_the_last_page_says_how_many_there_are(search: httpx.Client) -> None:
    last = search.post("/threads/search", json={"limit": 10, "offset": 35, "status": "idle"})
    assert numbers_of(last) == [4, 3, 2, 1, 0]
    assert last.headers["X-Pagination-Total"] == "40"
    beyond = search.post("/threads/search", json={"limit": 10, "offset": 100_000, "status": "idle"})
    assert beyond.json() == []


@pytest.mark.parametrize("asked", [{}, {"status": "idle"}, {"metadata": {"half": 1}}, {"metadata": {"third": "t1"}}])
@pytest.mark.parametrize("by", [None, "created_at", "updated_at", "thread_id", "status"])
@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_searches_have_orders(search: httpx.Client, asked: dict[str, Any], by: str | None, order: str | None) -> None:
    found = set(numbers_of(search.post("/threads/search", json={**asked, "limit": 1000})))
    # The ids of the threads grow in the order in which they were made, and all have one status.
    want = sorted(found, reverse=order != "asc")
    body = {**asked, **({"sort_by": by} if by else {}), **({"sort_order": order} if order else {})}
    assert numbers_of(search.post("/threads/search", json={**body, "limit": 1000})) == want
    pages: list[int] = []
    while len(pages) < len(want):
        answer = search.post("/threads/search", json={**body, "limit": 7, "offset": len(pages)})
        pages += numbers_of(answer)
    assert pages == want
    assert answer.headers.get("x-pagination-total", str(len(want))) == str(len(want))


def test_orders_go_by_the_last_change_and_the_status(search: httpx.Client) -> None:
    first, second = str(uuid.UUID(int=0)), str(uuid.UUID(int=1))
    assert search.patch(f"/threads/{first}", json={"metadata": {"new": 1}}).status_code == 200
    newest = search.post("/threads/search", json={"metadata": {"team": "a"}, "sort_by": "updated_at", "limit": 1})
    assert numbers_of(newest) == [0]
    oldest = {"metadata": {"team": "a"}, "sort_by": "created_at", "sort_order": "asc", "limit": 2}
    assert [t["thread_id"] for t in search.post("/threads/search", json=oldest).json()] == [first, second]
