"""Expenses as people hand them in and decide them, with commands alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from office import Person, let_in, make_keys, write_graph

from graphd.dev import dev

Open = Callable[..., dict[str, Person]]


@pytest.fixture
def open_office(tmp_path: Path) -> Iterator[Open]:
    """Starts a server with the graph, in which durations may be replaced; returns its people."""
    with ExitStack() as servers:

        def begin(**durations: str) -> dict[str, Person]:
            write_graph(tmp_path / "graph.yaml", durations)
            keys = tmp_path / "keys.yaml"
            make_keys(keys)
            flags = ["--graphs", str(tmp_path), "--api-keys", str(keys)]
            server = servers.enter_context(dev(store=f"sqlite:{tmp_path}/graphd.db", flags=flags))
            return let_in(server.address, keys)

        yield begin


APPROVED = {"decision": "approved", "account": "6600", "pay_within_days": 14}


def hand_in(person: Person, thread: str, amount: float, code: int = 3) -> str:
    expense = {"employee": "Eva", "amount": amount, "purpose": "a laptop"}
    return person("run", "expense", "--thread", thread, "--input", json.dumps(expense), code=code)


def answer(person: Person, thread: str, value: dict[str, object], code: int = 0, *further: str) -> str:
    return person("resume", thread, "--value", json.dumps(value), *further, code=code)


def result(person: Person, thread: str) -> str:
    values = json.loads(person("state", thread, "-o", "json"))["values"]
    return str(values.get("result", ""))


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it does not become true"
        time.sleep(0.1)


def test_a_small_expense_asks_nobody(open_office: Open) -> None:
    eva = open_office()["eva"]
    assert "Approved: 99.99 EUR for a laptop, paid within 30 days." in hand_in(eva, "small", 99.99, code=0)


def test_one_team_lead_decides(open_office: Open) -> None:
    people = open_office(undo="0s")
    for thread, amount in (("from", 100), ("to", 1000)):
        hand_in(people["eva"], thread, amount)
        assert "rule: group" in answer(people["ana"], thread, {"decision": "approved"}, 1)
        assert "Rejected" in answer(people["tom"], thread, {"decision": "rejected", "remark": "Too much."})
        assert result(people["eva"], thread).endswith(f"{amount} EUR for a laptop. Too much.")


def test_two_of_finance_agree_on_one_answer(open_office: Open) -> None:
    people = open_office(undo="0s")
    hand_in(people["eva"], "large", 1000.01)
    answer(people["ana"], "large", APPROVED, 3)
    answer(people["ben"], "large", APPROVED | {"account": "6500"}, 3)
    assert "2 of 2" not in people["ana"]("inbox", "show", "large")
    answer(people["ben"], "large", APPROVED)
    assert "paid within 14 days from account 6600." in result(people["eva"], "large")
    assert "each follows the one before" in people["eva"]("inbox", "trail", "large", "--verify")


def test_one_of_finance_rejects(open_office: Open) -> None:
    people = open_office(undo="0s")
    hand_in(people["eva"], "large", 5000)
    answer(people["ana"], "large", APPROVED, 3)
    answer(people["ben"], "large", {"decision": "rejected"})
    assert result(people["eva"], "large").startswith("Rejected")


def test_nobody_decides_an_expense_of_their_own(open_office: Open) -> None:
    people = open_office(undo="0s")
    for name, amount in (("tom", 500), ("ana", 5000)):
        hand_in(people[name], f"of-{name}", amount)
        assert "rule: not_requester" in answer(people[name], f"of-{name}", {"decision": "rejected"}, 1)
        shown = people[name].types("resume", f"of-{name}", lines=[], code=1)
        assert "rule: not_requester" in shown and "field by field" not in shown
        assert people[name].question(f"of-{name}").get("votes", []) == []


def test_an_answer_is_taken_back(open_office: Open) -> None:
    people = open_office(undo="1h")
    hand_in(people["eva"], "train", 240)
    answer(people["tom"], "train", {"decision": "rejected"}, 0, "--detach")
    assert people["tom"].question("train")["state"] == "INTERRUPT_STATE_ANSWERED"
    assert "answered by tom, takes effect at " in people["tom"]("resume", "train")
    assert "is answered already, by tom" in people["tom"]("inbox", "take", "train", code=2)
    assert "rule: responder" in people["ana"]("inbox", "undo", "train", code=1)
    assert "open again" in people["tom"]("inbox", "undo", "train", "--note", "the wrong one")
    assert people["tom"].question("train")["state"] == "INTERRUPT_STATE_OPEN"
    assert "retracted by tom" in people["eva"]("inbox", "trail", "train")


def test_people_need_no_json(open_office: Open) -> None:
    people = open_office(undo="0s")
    run = ["run", "expense", "--thread", "large", "--ask"]
    shown = people["eva"].types(*run, lines=["Eva", "much", "1840", "a laptop", "y"], code=3)
    assert "want number" in shown and shown.endswith("graphd resume large\n")
    shown = people["ana"].types("resume", "large", lines=["1", ":skip", "6600", ":back", "", "14", "y"], code=3)
    assert "account is required" in shown and "voted by ana; 1 of 2 agree" in shown
    shown = people["ben"].types("resume", "large", lines=["2", ":done", "n", "approved", "6600", "14", "y"])
    assert "    account          6600\n" in shown
    assert "paid within 14 days from account 6600." in shown


def test_the_rest_of_the_fields_keep_their_defaults(open_office: Open) -> None:
    people = open_office(undo="0s")
    hand_in(people["eva"], "train", 240)
    shown = people["tom"].types("resume", "train", lines=["1", ":done", "y"])
    assert "    pay_within_days  30\n" in shown and "paid within 30 days" in shown


def test_an_expense_goes_to_the_board(open_office: Open) -> None:
    people = open_office(undo="0s", remind="1s", escalate="2s")
    hand_in(people["eva"], "large", 5000)
    wait_until(lambda: people["ida"].question("large")["priority"] == "PRIORITY_URGENT")
    assert "large" in people["ida"]("inbox", "--mine", "--priority", "urgent")
    answer(people["ida"], "large", APPROVED, 3)
    answer(people["ben"], "large", APPROVED)
    trail = people["eva"]("inbox", "trail", "large", "--verify")
    assert trail.index("reminded") < trail.index("escalated") < trail.index("voted by ida")
    assert result(people["eva"], "large").startswith("Approved")


def test_an_expense_that_nobody_decides_is_rejected(open_office: Open) -> None:
    people = open_office(remind="1s", escalate="2s", default="3s")
    hand_in(people["eva"], "large", 5000)
    wait_until(lambda: result(people["eva"], "large").startswith("Rejected"))
    assert people["eva"].question("large").get("responder", "") == ""
