"""What clients read of what became of questions."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from graphd import AsyncClient, Client
from graphd.dev import dev
from graphd.errors import GraphdError
from graphd.remote import DecisionCount, QuestionCounts

ASK = """
graph: leave
channels: { request: {}, answer: {} }
input: [request]
nodes:
  review:
    ask:
      message: state.request
      schema: { type: object, required: [decision], properties: { decision: { enum: [granted, refused] } } }
      update: { answer: answer }
edges: [START -> review -> END]
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a server on which three questions were asked, and two answered."""
    with dev() as server:
        client = Client(server.address)
        client.graphs.put(ASK)
        for number in range(3):
            client.runs.wait(f"t{number}", client.runs.start("leave", {"request": "1"}, thread_id=f"t{number}").run_id)
        for thread, decision in (("t0", "granted"), ("t1", "granted")):
            client.inbox.answer(next(client.inbox.list(thread_id=thread)), {"decision": decision})
        yield client


async def test_statistics_say_what_became_of_questions(client: Client) -> None:
    found = client.inbox.statistics()
    assert found.interval == datetime.timedelta(hours=1) and len(found.all.intervals) == 24
    assert found.all.total == QuestionCounts(3, 2, 0, 0, 0, 0)
    assert sum(one.asked for one in found.all.intervals) == 3
    assert found.groups[""].total == found.all.total, "they are for no group"
    assert found.all.median_wait is not None and found.all.median_wait > datetime.timedelta(0)
    assert found.counts_since is not None and found.begins_at is not None and found.begins_at < found.counts_since
    assert found.others is None and not found.is_partial
    target = client.inbox._caller.server.target
    again = AsyncClient(target.address, security=target.security).inbox
    assert await again.statistics() == found
    assert len((await again.statistics(interval=datetime.timedelta(minutes=15))).all.intervals) == 96
    assert await again.answer_statistics("leave", "review") == client.inbox.answer_statistics("leave", "review")


def test_answers_are_counted_by_decision(client: Client) -> None:
    found = client.inbox.answer_statistics("leave", "review")
    assert (found.answered, found.dismissed, found.defaulted, found.expired) == (2, 0, 0, 0)
    assert found.decisions == [DecisionCount("granted", 2)]
    assert found.median_wait is not None and found.p95_wait is not None and found.counts_since is not None
    nothing = client.inbox.answer_statistics("leave", "another")
    assert nothing.answered == 0 and nothing.decisions == [] and nothing.median_wait is None


def test_the_server_refuses_other_intervals(client: Client) -> None:
    with pytest.raises(GraphdError, match="multiple of 15 minutes"):
        client.inbox.statistics(interval=datetime.timedelta(minutes=7))
