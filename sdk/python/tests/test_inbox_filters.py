"""Questions that a client finds, follows and counts by whom they are for, and when they are due."""

from __future__ import annotations

import asyncio
import datetime
import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from graphd import AsyncClient, Client, Security
from graphd._gen.v1 import interrupt_pb2
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd.dev import dev
from graphd.errors import GraphdError
from graphd.remote import QuestionCount
from graphd.remote.inbox_watch import ResumableWatch
from graphd.transport.attempts import Deadline
from tests.test_client_inbox import make_key

ASK = """
graph: {name}
channels: {{ request: {{}}, decision: {{}} }}
input: [request]
nodes:
  review:
    ask:
      message: state.request
      {options}
      update: {{ decision: answer }}
edges: [START -> review -> END]
"""
GRAPHS = {
    "refund": "people: { groups: [finance] }\n      priority: high\n      ttl: 2h",
    "hiring": "people: { users: [ben] }\n      ttl: 1h",
    "survey": "assignees: [carl]\n      reason: input",
}
THREADS = {"t1": "refund", "t2": "hiring", "t3": "survey", "t4": "refund"}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """A client of each person, of a server that has a question in each of THREADS; ana has claimed that of t3."""
    keys = tmp_path_factory.mktemp("keys") / "keys.yaml"
    groups = {"eva": [], "ana": ["finance"], "ben": ["staff"]}
    tokens = {name: make_key(keys, name, ["admin"], of) for name, of in groups.items()}
    with dev(flags=["--api-keys", str(keys)], security=Security(token=tokens["eva"])) as server:
        clients = {name: Client(server.address, security=Security(token=token)) for name, token in tokens.items()}
        for name, options in GRAPHS.items():
            clients["eva"].graphs.put(ASK.format(name=name, options=options))
        for thread, graph in THREADS.items():
            ask(clients["eva"], thread, graph)
        clients["ana"].inbox.claim(next(clients["ana"].inbox.list(thread_id="t3")), 3600)
        yield clients


def ask(client: Client, thread: str, graph: str) -> None:
    run = client.runs.start(graph, {"request": thread}, thread_id=thread)
    assert client.runs.wait(thread, run.run_id).state == "interrupted"


def aclient_of(client: Client) -> AsyncClient:
    target = client.inbox._caller.server.target
    return AsyncClient(target.address, security=target.security)


FOUND: list[tuple[str, dict[str, Any], list[str]]] = [
    ("eva", {}, ["t1", "t2", "t3", "t4"]),
    ("eva", {"group": "finance"}, ["t1", "t4"]),
    ("eva", {"group": "nobody"}, []),
    ("eva", {"assignee": "ben"}, ["t2"]),
    ("eva", {"claimed_by": "ana"}, ["t3"]),
    ("eva", {"priority": "high"}, ["t1", "t4"]),
    ("eva", {"priority": "normal", "graph": "hiring"}, ["t2"]),
    ("eva", {"mine": True}, []),
    ("eva", {"mine": False, "graph": "survey", "node": "review", "reason": "input"}, ["t3"]),
    ("ana", {"mine": True}, ["t1", "t3", "t4"]),
    ("ana", {"mine": True, "priority": "high"}, ["t1", "t4"]),
    ("ben", {"mine": True}, ["t2"]),
    ("eva", {"order_by": "created"}, ["t1", "t2", "t3", "t4"]),
    ("eva", {"order_by": "due"}, ["t2", "t1", "t4"]),
    ("eva", {"order_by": "due", "group": "finance"}, ["t1", "t4"]),
    ("eva", {"due_before": timedelta(minutes=90)}, ["t2"]),
    ("eva", {"due_before": timedelta(0)}, []),
    ("eva", {"due_before": datetime.datetime(2261, 1, 1, tzinfo=datetime.timezone.utc)}, ["t2", "t1", "t4"]),
    ("eva", {"due_before": timedelta(hours=3), "order_by": "due", "mine": False, "priority": "high"}, ["t1", "t4"]),
]


@pytest.mark.parametrize(("name", "given", "threads"), FOUND)
async def test_questions_are_found(people: dict[str, Client], name: str, given: Any, threads: list[str]) -> None:
    assert [q.thread_id for q in people[name].inbox.list(**given)] == threads
    assert [q.thread_id async for q in aclient_of(people[name]).inbox.list(**given)] == threads


def test_a_time_in_any_zone_is_one_time(people: dict[str, Client]) -> None:
    (question,) = people["eva"].inbox.list(graph="hiring")
    assert question.due_at is not None
    for hours in (-11, 0, 5.5, 14):
        zone = datetime.timezone(timedelta(hours=hours))
        due = question.due_at.astimezone(zone)
        assert list(people["eva"].inbox.list(due_before=due)) == []
        assert list(people["eva"].inbox.list(due_before=due + timedelta(microseconds=1))) == [question]


def test_what_no_index_finds_is_refused_by_the_server(people: dict[str, Client]) -> None:
    for given in ({"priority": "normal"}, {"reason": "input"}, {"group": "finance", "state": "*"}):
        with pytest.raises(GraphdError) as refused:
            list(people["eva"].inbox.list(**given))
        assert refused.value.reason == "INVALID_FIELD"


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"group": ""}, ValueError, "group is '': want a name, or None for any"),
    ({"group": ["finance"]}, TypeError, r"group is \['finance'\]: want a text"),
    ({"assignee": ""}, ValueError, "assignee is '': want a name"),
    ({"priority": "soon"}, ValueError, "priority is 'soon': want one of low, normal, high, urgent"),
    ({"mine": "ana"}, TypeError, "mine is 'ana': want True for the questions of the caller"),
]
WRONG_IN_LISTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"claimed_by": 7}, TypeError, "claimed_by is 7: want a text"),
    ({"due_before": 3600}, TypeError, "due_before is 3600: want a datetime with a time zone, or a timedelta from now"),
    ({"due_before": datetime.datetime(2026, 3, 17)}, ValueError, "due_before is .*: want a datetime with a time zone"),
    ({"due_before": datetime.date(2026, 3, 17)}, TypeError, "due_before is .*: want a datetime with a time zone"),
    ({"due_before": timedelta.max}, ValueError, "due_before is .*: want a time of the years 1678 to 2261"),
    (
        {"due_before": datetime.datetime.max.replace(tzinfo=datetime.timezone(timedelta(hours=-1)))},
        ValueError,
        "due_before is .*: want a time of the years 1678 to 2261",
    ),
    ({"order_by": "due_time"}, ValueError, "order_by is 'due_time': want 'created', oldest first, or 'due'"),
]


@pytest.mark.parametrize(("given", "kind", "words"), [*WRONG, *WRONG_IN_LISTS])
def test_a_wrong_argument_is_named_before_any_call(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Client("no-server.invalid:1").inbox.list(**given)
    with pytest.raises(kind, match=words):
        AsyncClient("no-server.invalid:1").inbox.list(**given)


@pytest.mark.parametrize(
    ("given", "kind", "words"), [*WRONG, ({"after": "t", "start_now": True}, ValueError, "start_now is True.* after")]
)
def test_a_wrong_argument_of_a_watch_is_named_before_any_call(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Client("no-server.invalid:1").inbox.watch(**given)
    with pytest.raises(kind, match=words):
        AsyncClient("no-server.invalid:1").inbox.watch(**given)


def test_questions_are_watched_by_whom_they_are_for(people: dict[str, Client]) -> None:
    mine = people["ana"].inbox.watch(mine=True, timeout=60)
    assert [next(mine).question.thread_id for _ in range(2)] == ["t1", "t4"], "a watch has no claims"
    high = people["eva"].inbox.watch(group="finance", priority="high", state="open", timeout=60)
    assert [next(high).question.thread_id for _ in range(2)] == ["t1", "t4"]
    for thread, graph in (("w1", "survey"), ("w2", "refund")):
        ask(people["eva"], thread, graph)
    for watch in (mine, high):
        change = next(watch)
        assert (change.question.thread_id, change.is_initial) == ("w2", False)
        assert not change.is_gone
    people["ana"].inbox.answer(change.question, "yes")
    for watch in (mine, high):
        shown = [next(watch)]
        while watch is mine and shown[-1].question.state != "consumed":
            shown.append(next(watch))
        assert {c.question.thread_id for c in shown} == {"w2"}
        assert [c.is_gone for c in shown] == [watch is high] * len(shown), "only open questions were asked for"
        watch.close()
    people["eva"].threads.delete("w1")
    people["eva"].threads.delete("w2")


async def test_a_watch_begins_with_the_changes_from_now_on(people: dict[str, Client]) -> None:
    """When a watch has begun is not told, so there are new questions until both have shown one."""

    async def first(changes: AsyncIterator[Any]) -> Any:
        async for change in changes:
            return change

    async def ask_until_done(*waiting: asyncio.Task[Any]) -> None:
        for number in itertools.count():
            if all(task.done() for task in waiting):
                return
            await asyncio.to_thread(ask, people["eva"], f"now-{number}", "hiring")

    client = aclient_of(people["eva"])
    seen = asyncio.create_task(first(client.inbox.watch(graph="hiring", start_now=True, timeout=60)))
    watch = people["eva"].inbox.watch(graph="hiring", start_now=True, timeout=60)
    plain = asyncio.create_task(asyncio.to_thread(next, watch))
    await ask_until_done(seen, plain)
    for change in (seen.result(), plain.result()):
        assert change.question.thread_id.startswith("now-") and not change.is_initial and change.token
    again = people["eva"].inbox.watch(graph="hiring", after=plain.result().token, timeout=60)
    await asyncio.to_thread(ask, people["eva"], "now-last", "hiring")
    assert (await asyncio.to_thread(next, again)).question.thread_id.startswith("now-")
    for thread in people["eva"].threads.list(graph="hiring"):
        if thread.thread_id.startswith("now-"):
            people["eva"].threads.delete(thread.thread_id)


async def test_open_questions_are_counted(people: dict[str, Client]) -> None:
    eva, ana = people["eva"].inbox, people["ana"].inbox
    assert eva.count() == QuestionCount(4, "exact")
    assert eva.count(group="finance") == eva.count(priority="high") == QuestionCount(2, "exact")
    assert eva.count(assignee="ben") == eva.count(graph="hiring") == QuestionCount(1, "exact")
    assert eva.count(claimed_by="ana") == QuestionCount(1, "at_most"), "the claim may have ended"
    assert eva.count(mine=True) == QuestionCount(0, "exact")
    assert ana.count(mine=True) == QuestionCount(3, "at_most"), "some may count for a group and for a claim"
    expected = [QuestionCount(4, "exact"), QuestionCount(1, "exact"), QuestionCount(3, "at_most")]
    assert ana.count_each([{}, {"graph": "survey"}, {"mine": True}]) == expected
    assert len(ana.count_each(iter([{}] * 32))) == 32
    client = aclient_of(people["ana"]).inbox
    assert await client.count(priority="high") == QuestionCount(2, "exact")
    assert await client.count_each([{}, {"graph": "survey"}, {"mine": True}]) == expected


WRONG_FILTERS: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, "filters has 0 entries: want 1 to 32"),
    ([{}] * 33, ValueError, "filters has 33 entries: want 1 to 32"),
    (
        [{}, {"node": "review"}],
        TypeError,
        r"filters\[1\] is {'node': 'review'}: want a dict with one of graph, assignee",
    ),
    ([None], TypeError, r"filters\[0\] is None: want a dict"),
    ([{"graph": "a", "mine": True}], ValueError, r"filters\[0\] has graph and mine: want one condition"),
    ([{"priority": "normal"}], ValueError, r"filters\[0\]: priority is 'normal'.*want low, high or urgent"),
    ([{"group": ""}], ValueError, r"group is ''"),
]


@pytest.mark.parametrize(("given", "kind", "words"), WRONG_FILTERS)
def test_a_wrong_filter_of_a_count_is_named_before_any_call(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Client("no-server.invalid:1").inbox.count_each(given)


def test_a_count_has_one_condition() -> None:
    with pytest.raises(ValueError, match=r"count\(\) has graph and mine: want one condition, or none"):
        Client("no-server.invalid:1").inbox.count(graph="refund", mine=True)


def test_a_watch_that_breaks_goes_on_where_it_was() -> None:
    watch = ResumableWatch("", "", Deadline(None), start_now=True)
    assert watch.record_changes(ins.InterruptChange(resume_token="t", bookmark=True)) == []
    assert (watch.request.resume_token, watch.request.start_now) == ("t", False)


def test_changes_that_come_together_go_on_before_or_after_all_of_them() -> None:
    watch = ResumableWatch("", "", Deadline(None))

    def batch(token: str, *names: str) -> ins.InterruptChange:
        changes = [ins.InterruptChange(interrupt=interrupt_pb2.Interrupt(interrupt_id=name)) for name in names]
        return ins.InterruptChange(changes=changes, resume_token=token)

    assert watch.record_changes(batch("", "a", "b")) == []
    assert watch.record_changes(batch("", "c")) == []
    first = watch.record_changes(ins.InterruptChange(resume_token="1", bookmark=True))
    assert [(one.question.question_id, one.is_initial, one.token) for one in first] == [
        ("a", True, ""),
        ("b", True, ""),
        ("c", True, ""),
    ]
    then = watch.record_changes(batch("2", "d", "e", "f"))
    assert [(one.question.question_id, one.is_initial, one.token) for one in then] == [
        ("d", False, "1"),
        ("e", False, "1"),
        ("f", False, "2"),
    ]
    assert watch.request.resume_token == "2"
