"""Crons of the API of LangGraph Server: runs that start by a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient

from graphd.dev import DevServer
from tests.langgraph_api.flows import NO_SUCH_ID, new_thread
from tests.langgraph_api.notes import http_status
from tests.langgraph_api.receiver import Receiver
from tests.langgraph_api.server import find_url, open_store

pytestmark = pytest.mark.usefixtures("one_authority")

IN: Any = {"log": ["in"]}
OTHER: Any = {"log": ["other"]}

GRAPH = """\
graph: tick
channels: { log: { reducer: append }, context: {} }
nodes:
  note: { expr: { update: { log: "['tick']", context: "context" } } }
edges: [START -> note -> END]
"""


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "tick.yaml").write_text(GRAPH)
    return folder


def flags(graphs: Path, allowed: str = "127.0.0.1:1") -> list[str]:
    given = f"--langgraph 127.0.0.1:0 --webhook-allow {allowed} --max-crons 20 --graphs {graphs}"
    return given.split()


@pytest.fixture(scope="module", params=["memory", "sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, graphs: Path) -> Iterator[str]:
    with (
        open_store(request.param, tmp_path_factory.mktemp("store")) as store,
        DevServer(store=store, flags=flags(graphs)) as server,
    ):
        yield find_url(server)


@pytest.fixture
async def client(url: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=url, api_key=None) as made:
        yield made
        for cron in await made.crons.search(limit=1000):
            await made.crons.delete(cron["cron_id"])


def time_of(text: Any) -> datetime:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00"))


async def create(client: LangGraphClient, **fields: Any) -> dict[str, Any]:
    made: Any = await client.crons.create("tick", **{"schedule": "0 9 * * *", "input": IN, **fields})
    return dict(made)


async def test_a_cron_has_the_fields_of_the_client(client: LangGraphClient) -> None:
    end = datetime(2040, 1, 31, 9, tzinfo=UTC)
    made = await create(
        client,
        metadata={"team": "blue", "n": 1},
        config={"configurable": {"tone": "dry"}, "recursion_limit": 7},
        timezone=ZoneInfo("Europe/Berlin"),
        end_time=end,
        stream_mode=["values", "updates"],
        interrupt_before=["note"],
        webhook="http://127.0.0.1:1/hook",
    )
    (assistant,) = await client.assistants.search(graph_id="tick")
    assert set(made) == {
        "cron_id", "assistant_id", "thread_id", "on_run_completed", "end_time", "schedule", "timezone",
        "created_at", "updated_at", "payload", "user_id", "next_run_date", "metadata", "enabled",
    }  # fmt: skip
    assert made["assistant_id"] == assistant["assistant_id"]
    assert (made["thread_id"], made["on_run_completed"], made["user_id"]) == (None, "delete", None)
    assert (made["schedule"], made["timezone"], made["enabled"]) == ("0 9 * * *", "Europe/Berlin", True)
    assert time_of(made["end_time"]) == end
    assert made["metadata"] == {"team": "blue", "n": 1}
    assert made["payload"] == {
        "assistant_id": "tick",
        "schedule": "0 9 * * *",
        "input": {"log": ["in"]},
        "config": {"configurable": {"tone": "dry"}, "recursion_limit": 7},
        "metadata": {"team": "blue", "n": 1},
        "interrupt_before": ["note"],
        "stream_mode": ["values", "updates"],
        "webhook": "http://127.0.0.1:1/hook",
    }
    next_run = time_of(made["next_run_date"]).astimezone(ZoneInfo("Europe/Berlin"))
    assert (next_run.hour, next_run.minute) == (9, 0)
    assert timedelta() < next_run - datetime.now(UTC) <= timedelta(days=1, hours=1)
    (found,) = await client.crons.search(limit=1)
    assert found == made
    answer = await client.http.get(f"/runs/crons/{made['cron_id']}")
    assert answer == made


async def test_a_cron_is_changed(client: LangGraphClient) -> None:
    made = await create(client, metadata={"team": "blue"}, end_time=datetime(2040, 1, 31))
    paused: Any = await client.crons.update(made["cron_id"], enabled=False)
    assert paused == {**made, "enabled": False, "next_run_date": None, "updated_at": paused["updated_at"]}
    changed: Any = await client.crons.update(
        made["cron_id"],
        schedule="30 10 * * *",
        end_time=None,
        enabled=True,
        input=OTHER,
        metadata={"level": 2},
        on_run_completed="keep",
    )
    assert (changed["schedule"], changed["end_time"], changed["on_run_completed"]) == ("30 10 * * *", None, "keep")
    assert changed["metadata"] == {"team": "blue", "level": 2}
    assert changed["payload"]["input"] == {"log": ["other"]}
    assert changed["payload"]["metadata"] == {"team": "blue", "level": 2}
    assert time_of(changed["next_run_date"]).minute == 30
    assert changed["created_at"] == made["created_at"] and changed["updated_at"] > made["updated_at"]
    await client.crons.delete(made["cron_id"])
    for again in (client.crons.delete(made["cron_id"]), client.crons.update(made["cron_id"], enabled=True)):
        assert await http_status(again) == 404


async def test_crons_are_found(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    assistant = await client.assistants.create("tick", name="second")
    made = [
        await create(client, metadata={"kind": kind, "n": at}, end_time=datetime(2045 - at, 1, 1))
        for at, kind in enumerate(["a", "b", "a"])
    ]
    made.append(await create(client, enabled=False))
    made[3] = dict(await client.crons.update(made[3]["cron_id"], timezone="Asia/Tokyo"))
    own: Any = await client.crons.create_for_thread(
        thread, assistant["assistant_id"], schedule="@monthly", multitask_strategy="reject"
    )
    made.append(own)
    assert (own["thread_id"], own["on_run_completed"]) == (thread, None)
    assert own["assistant_id"] == assistant["assistant_id"]
    for fields, expected in (
        ({}, [4, 3, 2, 1, 0]),
        ({"limit": 2, "offset": 1}, [3, 2]),
        ({"assistant_id": "tick"}, [3, 2, 1, 0]),
        ({"assistant_id": assistant["assistant_id"]}, [4]),
        ({"assistant_id": NO_SUCH_ID}, []),
        ({"thread_id": thread}, [4]),
        ({"thread_id": NO_SUCH_ID}, []),
        ({"enabled": False}, [3]),
        ({"enabled": True, "sort_by": "end_time", "sort_order": "asc", "limit": 3}, [2, 1, 0]),
        ({"metadata": {"kind": "a"}}, [2, 0]),
        ({"metadata": {"kind": "a", "n": 2}}, [2]),
        ({"sort_by": "created_at", "sort_order": "asc"}, [0, 1, 2, 3, 4]),
    ):
        found = await client.crons.search(**fields)
        assert [cron["cron_id"] for cron in found] == [made[at]["cron_id"] for at in expected], fields
        if set(fields) <= {"assistant_id", "thread_id", "metadata"}:
            assert await client.crons.count(**fields) == len(expected)
    (chosen,) = await client.crons.search(limit=1, select=["cron_id", "schedule"])
    assert chosen == {"cron_id": own["cron_id"], "schedule": "@monthly"}


def test_the_synchronous_client(url: str) -> None:
    with get_sync_client(url=url, api_key=None) as client:
        made: Any = client.crons.create("tick", schedule="* * 1 1 *", timezone="UTC")
        assert client.crons.count() == 1
        client.crons.delete(made["cron_id"])


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"schedule": None}, "schedule"),
        ({"schedule": "* * * * * *"}, "schedule"),
        ({"schedule": "@every 1s"}, "schedule"),
        ({"schedule": "0 0 31 2 *"}, "schedule"),
        ({"schedule": 5}, "schedule"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"end_time": "soon"}, "end_time"),
        ({"end_time": "2020-01-01T00:00:00"}, "end_time"),
        ({"assistant_id": "nothing"}, "assistant_id"),
        ({"assistant_id": None}, "assistant_id"),
        ({"on_run_completed": "burn"}, "on_run_completed"),
        ({"multitask_strategy": "wait"}, "multitask_strategy"),
        ({"stream_mode": "all"}, "stream_mode"),
        ({"webhook": "http://10.0.0.1/x"}, "webhook"),
        ({"after_seconds": 5}, "after_seconds"),
        ({"command": {"resume": 1}}, "command"),
        ({"metadata": {"langgraph.x": 1}}, "metadata"),
    ],
)
async def test_requests_that_are_refused(client: LangGraphClient, url: str, fields: dict[str, Any], field: str) -> None:
    body = {"assistant_id": "tick", "schedule": "0 9 * * *", **fields}
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.post("/runs/crons", json={k: v for k, v in body.items() if v is not None})
        assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
        assert await client.crons.count() == 0


async def test_limits_and_unknown_ids(client: LangGraphClient) -> None:
    assert await http_status(client.crons.create_for_thread(NO_SUCH_ID, "tick", schedule="0 9 * * *")) == 404
    assert await http_status(client.crons.update(NO_SUCH_ID, enabled=True)) == 404
    assert await http_status(client.crons.search(sort_by="name")) == 422  # type: ignore[arg-type]
    for _ in range(20):
        await create(client)
    assert await http_status(create(client)) == 429


async def wait_for_runs(client: LangGraphClient, thread: str) -> list[Any]:
    """The runs of a thread, as soon as there is one that has ended."""
    for _ in range(1000):
        found = await client.runs.list(thread)
        if found and found[0]["status"] == "success":
            return found
        await asyncio.sleep(0.1)
    raise AssertionError("the cron does not fire")


async def test_crons_fire_once_over_a_kill(request: pytest.FixtureRequest, tmp_path: Path, graphs: Path) -> None:
    """A server is killed while the firings are due that it has promised, and another one makes them."""
    store, receiver = f"sqlite:{tmp_path}/graphd.db", Receiver()
    request.addfinalizer(receiver.server.shutdown)
    given = flags(graphs, receiver.address)
    with DevServer(store=store, flags=given) as server:
        async with get_client(url=find_url(server), api_key=None) as client:
            while datetime.now().second > 50:  # the crons are to be made within one minute
                await asyncio.sleep(0.5)
            thread = await new_thread(client)
            end = datetime.now(UTC) + timedelta(seconds=60)  # each fires once
            made: Any = await client.crons.create_for_thread(
                thread, "tick", schedule="* * * * *", input=IN, context={"tone": "dry"}, end_time=end,
                metadata={"from": "cron"}, stream_mode=["updates"],
            )  # fmt: skip
            for kept in ("keep", "delete"):
                await create(
                    client,
                    schedule="* * * * *",
                    input={"log": [kept]},
                    on_run_completed=kept,
                    end_time=end,
                    webhook=f"http://{receiver.address}/{kept}",
                )
            assert end - timedelta(seconds=60) < time_of(made["next_run_date"]) <= end
        server.process.kill()
        server.process.wait()
    while datetime.now(UTC) < time_of(made["next_run_date"]):
        await asyncio.sleep(0.2)
    with DevServer(store=store, flags=given) as server:
        async with get_client(url=find_url(server), api_key=None) as client:
            (run,) = await wait_for_runs(client, thread)
            assert run["metadata"]["from"] == "cron"
            assert (await client.threads.get_state(thread))["values"] == {
                "log": ["in", "tick"],
                "context": {"tone": "dry"},
            }
            assert (await client.runs.get(thread, run["run_id"]))["run_id"] == run["run_id"]
            joined: Any = await client.runs.join(thread, run["run_id"])
            assert joined["log"] == ["in", "tick"]
            while any(cron["next_run_date"] for cron in await client.crons.search()):
                await asyncio.sleep(0.1)
            found = await client.threads.search(limit=10)
            logs = [thread["values"]["log"] for thread in found if thread["values"]]
            assert sorted(logs) == [["delete", "tick"], ["in", "tick"], ["keep", "tick"]]
            told = await receiver.wait(lambda told: len(told) == 2)
            assert sorted(t["path"] for t in told) == ["/delete", "/keep"]
            assert all(t["id"] == t["run_id"] and t["status"] == "success" for t in told)
