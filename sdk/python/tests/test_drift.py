"""An answer is for the question that was shown."""

from __future__ import annotations

import json
import operator
import pathlib
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph, interrupt, memo
from graphd.dev import DevServer
from graphd.errors import NodeInterrupt, NonDeterministicNode
from graphd.runtime import drift
from graphd.runtime.replay import Answer, DriftRules, Place, Question, Replay, UsedAnswer
from graphd.types import Command, Interrupt

VECTORS = json.loads((pathlib.Path(__file__).parents[3] / "docs" / "seen-vectors.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_the_digest_is_the_one_of_the_server(vector: dict[str, Any]) -> None:
    parts = vector["value"], vector["message"], vector["schema"] or None, vector["ignore"]
    secret = vector.get("secret", [])
    assert drift.canonical_form(*parts, secret) == vector["shown"]
    assert drift.digest_json(*parts, secret) == vector["seen"]
    whole = vector.get("interrupt_id", ""), vector["value"], vector["ignore"], secret
    assert drift.digest_secret_json(*whole) == vector.get("secret_seen", "")


def test_what_is_no_part_of_a_question_is_refused() -> None:
    for ignore in (["at"], ["/a~"], [""]):
        with pytest.raises(ValueError, match="JSON pointers"):
            drift.check_drift(None, ignore)
    with pytest.raises(ValueError, match="must be a list"):
        drift.check_drift(None, "/at")
    with pytest.raises(ValueError, match="'fail', 'ask_again', 'accept', not 'again'"):
        drift.check_drift("again", [])
    assert drift.check_drift("fail", ["/a~0~1/0", "message"]) == ("/a~0~1/0", "message")


# What a replay does.

HERE = Place("", "", 0)


def answered(value: Any, ignore: tuple[str, ...] = ()) -> dict[Place, Answer]:
    return {HERE: Answer("yes", seen=drift.digest_question(value, "", None, ignore))}


def test_an_answer_to_something_else_is_no_answer() -> None:
    for known in (
        answered({"pay": 100}),
        {HERE: Answer(dismissed="no", seen="x")},
        {HERE: Answer(expired=True, seen="x")},
    ):
        replay = Replay(known, {})
        assert isinstance(replay.ask_question("", "", {"pay": 99999}, {}), Question)
        assert [q.value for q in replay.questions] == [{"pay": 99999}]
        assert replay.used == []
        replay.check_finished()


def test_an_answer_to_what_was_shown_is_told() -> None:
    replay = Replay(answered({"pay": 100}), {})
    assert isinstance(replay.ask_question("", "", {"pay": 100.0}, {}), Answer)
    assert replay.used == [UsedAnswer(HERE, drift.digest_question({"pay": 100}, "", None, ()), None)]


def test_what_may_differ_is_left_out() -> None:
    known = answered({"pay": 100}, ("/at", "/by"))
    replay = Replay(known, {}, DriftRules(None, ("/by",)))
    value = {"pay": 100, "at": "10:01", "by": "ann"}
    assert isinstance(replay.ask_question("", "", value, {"drift_ignore": ("/at",)}), Answer)


@pytest.mark.parametrize("rules", [DriftRules("accept"), DriftRules("fail")])
def test_a_program_may_accept_another_question(rules: DriftRules) -> None:
    replay = Replay(answered({"pay": 100}), {}, rules)
    assert isinstance(replay.ask_question("", "", {"pay": 99999}, {"drift": "accept"}), Answer)
    assert [u.asked.value for u in replay.used if u.asked] == [{"pay": 99999}]
    assert isinstance(
        Replay(answered(1), {}, DriftRules("accept")).ask_question("", "", 2, {"drift": "fail"}), Question
    )


def test_what_comes_behind_another_question_is_still_to_come() -> None:
    later = Place("", "", 1)
    replay = Replay({**answered("A"), later: Answer(2, seen=drift.digest_question("second", "", None, ()))}, {})
    assert isinstance(replay.ask_question("", "", "B", {}), Question)
    replay.check_finished()


def test_a_server_of_an_earlier_version_compares_nothing() -> None:
    assert isinstance(Replay({HERE: Answer("yes")}, {}).ask_question("", "", "B", {}), Answer)


# What the server makes of it.


class State(TypedDict):
    log: Annotated[list[Any], operator.add]


class Shop:
    """A node that pays what the price is when it runs."""

    def __init__(self, server: DevServer, name: str, compiled: dict[str, Any] | None = None, **asks: Any) -> None:
        self.price, self.paid, self.asks = 100, [], asks
        builder = StateGraph(State).add_node("pay", self.pay).add_edge(START, "pay")
        self.graph = builder.compile(InMemorySaver(server=server.address), name=name, **compiled or {})
        self.config = {"configurable": {"thread_id": name}}

    def pay(self, state: State) -> dict[str, Any]:
        price = self.price
        answer = interrupt({"pay": price, "at": price}, **self.asks)
        self.paid.append(price)
        return {"log": [answer, price]}

    def start(self) -> Any:
        return asked(self.graph.invoke({"log": []}, self.config))

    def answer(self, value: Any, price: int) -> Any:
        self.price = price
        return asked(self.graph.invoke(Command(resume=value), self.config))


def asked(result: dict[str, Any]) -> Any:
    return [i.value for i in result.get("__interrupt__", ())] or result["log"]


def test_a_yes_pays_what_was_shown(server: DevServer) -> None:
    shop = Shop(server, "drift-asks-again")
    shop.start()
    assert shop.answer("yes", 99999) == [{"pay": 99999, "at": 99999}]
    assert shop.paid == []
    assert shop.answer("yes, that too", 99999) == ["yes, that too", 99999]
    assert shop.paid == [99999]


def test_an_approval_fails_and_shows_both(server: DevServer) -> None:
    shop = Shop(server, "drift-fails", reason="approval", message="Pay?")
    shop.start()
    with pytest.raises(
        NonDeterministicNode, match=r"node 'pay' of thread '.*': .*/at: 100 → 99999; /pay: 100 → 99999\..*memo"
    ):
        shop.answer("yes", 99999)
    assert shop.paid == []
    shop.price = 100
    assert shop.graph.invoke(None, shop.config)["log"] == ["yes", 100]


def test_three_times_at_a_place(server: DevServer) -> None:
    shop = Shop(server, "drift-thrice")
    shop.start()
    for price in (1, 2, 3):
        assert shop.answer("yes", price) == [{"pay": price, "at": price}]
    with pytest.raises(NonDeterministicNode, match="3 times already"):
        shop.answer("yes", 4)
    assert shop.paid == []


@pytest.mark.parametrize("where", ["question", "graph"])
def test_accepted(server: DevServer, where: str) -> None:
    said = {"drift": "accept"}
    shop = Shop(
        server, f"drift-accept-{where}", said if where == "graph" else None, **(said if where == "question" else {})
    )
    shop.start()
    assert shop.answer("yes", 99999) == ["yes", 99999]


@pytest.mark.parametrize("where", ["question", "graph"])
def test_ignored_parts(server: DevServer, where: str) -> None:
    said = {"drift_ignore": ["/at", "/pay"]}
    shop = Shop(
        server, f"drift-ignore-{where}", said if where == "graph" else None, **(said if where == "question" else {})
    )
    shop.start()
    assert shop.answer("yes", 99999) == ["yes", 99999]


def test_a_graph_may_be_stricter_or_laxer_than_its_questions(server: DevServer) -> None:
    shop = Shop(server, "drift-graph-fails", {"drift": "fail"})
    shop.start()
    with pytest.raises(NonDeterministicNode):
        shop.answer("yes", 99999)
    shop = Shop(server, "drift-question-asks", {"drift": "fail"}, drift="ask_again")
    shop.start()
    assert shop.answer("yes", 99999) == [{"pay": 99999, "at": 99999}]


def test_b_in_the_place_of_a(server: DevServer) -> None:
    ask = ["A"]

    def node(state: State) -> dict[str, Any]:
        return {"log": [interrupt(what) for what in ask]}

    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="drift-b-for-a")
    config = {"configurable": {"thread_id": "drift-b-for-a"}}
    assert asked(graph.invoke({"log": []}, config)) == ["A"]
    ask[:] = ["B", "A"]
    assert asked(graph.invoke(Command(resume="for A"), config)) == ["B"]
    assert asked(graph.invoke(Command(resume="for B"), config)) == ["A"]
    assert asked(graph.invoke(Command(resume="for A"), config)) == ["for B", "for A"]


def test_memo_keeps_what_was_asked(server: DevServer) -> None:
    price = [100]

    def node(state: State) -> dict[str, Any]:
        offer = memo("price", lambda: price[0])
        return {"log": [interrupt({"pay": offer}), offer]}

    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="drift-memo")
    config = {"configurable": {"thread_id": "drift-memo"}}
    graph.invoke({"log": []}, config)
    price[0] = 99999
    assert asked(graph.invoke(Command(resume="yes"), config)) == ["yes", 100]


def test_what_a_node_raises_takes_no_answer(server: DevServer) -> None:
    tries: list[int] = []

    def node(state: State) -> dict[str, Any]:
        tries.append(1)
        raise NodeInterrupt(f"try {len(tries)}")

    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(InMemorySaver(server=server.address), name="drift-raises")
    config = {"configurable": {"thread_id": "drift-raises"}}
    graph.invoke({"log": []}, config)
    for n in range(2, 7):
        assert asked(graph.invoke(Command(resume="go on"), config)) == [f"try {n}"]


def test_a_second_question_says_what_it_replaces(server: DevServer) -> None:
    shop = Shop(server, "drift-replaces")
    (first,) = shop.graph.invoke({"log": []}, shop.config)["__interrupt__"]
    assert (first.replaces, first.differs) == ("", ())
    shop.price = 99999
    (second,) = shop.graph.invoke(Command(resume="yes"), shop.config)["__interrupt__"]
    assert (second.replaces, second.differs) == (first.id, ("/at", "/pay"))
    assert shop.graph.get_state(shop.config).interrupts[0].replaces == first.id
    assert repr(second) == f"Interrupt(value={second.value!r}, id={second.id!r}, response_schema=None)"
    assert second == Interrupt(value=second.value, id=second.id)
    assert Interrupt.__match_args__ == ("value", "id")
