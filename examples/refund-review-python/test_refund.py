"""The refund review as a person uses it: a server, a worker, the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import CommandLine, Start

from graphd.dev import DevServer, dev

PROGRAM = Path(__file__).with_name("refund.py")
GRAPH = "refund-review-python"


def run(graphd: CommandLine, thread: str, text: str, code: int) -> Any:
    request = {"user_id": 9007199254740993, "user_request": text}
    return graphd("run", GRAPH, "--thread", thread, "--input", json.dumps(request), code=code)


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        ({"decision": "approved"}, "The money is on its way."),
        ({"decision": "approved_with_conditions", "conditions": "10% fee"}, "under this condition: 10% fee"),
        ({"decision": "rejected", "reason": "Too late."}, "was declined. Too late."),
    ],
)
def test_a_decision_becomes_the_response(
    server: DevServer, start: Start, graphd: CommandLine, answer: dict[str, str], response: str
) -> None:
    start(PROGRAM, GRAPHD_SERVER=server.address)
    run(graphd, "t", "I want a refund for order 7", code=3)
    refused = graphd("resume", "t", "--value", '{"decision": "perhaps"}', code=1)
    assert "RESPONSE_SCHEMA_MISMATCH" in refused
    graphd("resume", "t", "--value", json.dumps(answer))
    values = graphd("state", "t")["values"]
    assert response in values["final_response"]
    assert values["user_id"] == 9007199254740993
    assert [entry["node"] for entry in values["conversation_history"]] == ["analyze", "human_review", "execute"]


def test_other_requests_need_no_reviewer(server: DevServer, start: Start, graphd: CommandLine) -> None:
    start(PROGRAM, GRAPHD_SERVER=server.address)
    run(graphd, "t", "When do you open?", code=0)
    assert "looking into it" in graphd("state", "t")["values"]["final_response"]


def test_a_question_outlives_the_worker_and_the_server(tmp_path: Path, start: Start) -> None:
    store, tickets = f"sqlite:{tmp_path}/threads.db", tmp_path / "tickets"
    with dev(store=store) as server:
        worker = start(PROGRAM, GRAPHD_SERVER=server.address, TICKET_LOG=str(tickets))
        run(CommandLine(server.address), "t", "My money back, please", code=3)
        worker.process.kill()
        server.process.kill()
    with dev(store=store) as server:
        start(PROGRAM, GRAPHD_SERVER=server.address, TICKET_LOG=str(tickets))
        graphd = CommandLine(server.address)
        graphd("resume", "t", "--value", '{"decision": "approved"}')
        values = graphd("state", "t")["values"]
        assert "on its way" in values["final_response"]
        assert values["ticket"].split() == tickets.read_text().split()  # opened once
