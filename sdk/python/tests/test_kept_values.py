"""A worker keeps values of states, so that the server sends each once."""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage

from graphd import END, START, StateGraph, WorkerLimits, codec
from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.compiled import sessions
from graphd.dev import DevServer
from graphd.types import Send
from graphd.worker.kept_values import KeptValue, KeptValues
from tests.relay import Relay


def assignment(
    channels: dict[str, str] | None = None,
    keep: dict[str, bytes] | None = None,
    use: dict[str, bytes] | None = None,
    forget: list[bytes] | None = None,
) -> pb.TaskAssignment:
    return pb.TaskAssignment(
        channels={name: payload_pb2.Payload(json=text) for name, text in (channels or {}).items()},
        kept=pb.KeptValues(keep=keep, use=use, forget=forget),
    )


def texts(given: pb.TaskAssignment) -> dict[str, str]:
    return {name: value.json for name, value in given.channels.items()}


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(sys.platform != "linux", reason="tells the memory of the process by /proc")
def test_a_kept_value_holds_no_more_than_itself() -> None:
    values = KeptValues()
    large = json.dumps("x" * (1 << 20))
    values.complete(assignment({"large": large}, keep={"large": b"large"}))
    before = resident_bytes()
    for i in range(300):
        message = assignment({"small": str(i)}, keep={"small": b"%d" % i}, use={"large": b"large"})
        values.complete(pb.TaskAssignment.FromString(message.SerializeToString()))
    assert resident_bytes() - before < 100 << 20, "each of them holds a copy of the large value"


def test_the_server_says_what_is_kept() -> None:
    values = KeptValues()
    found, missing = values.complete(pb.TaskAssignment())
    assert (found, missing) == ({}, [])

    found, missing = values.complete(assignment({"a": "[1]", "b": "2"}, keep={"a": b"one"}))
    assert (set(found), missing) == ({"a"}, [])
    second = assignment({"b": "3"}, use={"a": b"one", "c": b"one"})
    found, missing = values.complete(second)
    assert texts(second) == {"a": "[1]", "b": "3", "c": "[1]"}
    assert [found[name].load() for name in ("a", "c")] == [[1], [1]]
    assert missing == []

    assert values.complete(assignment(use={"a": b"one", "b": b"two"}))[1] == [b"two"]
    last = assignment(use={"a": b"one"}, forget=[b"one", b"none"])
    values.complete(last)
    assert texts(last) == {"a": "[1]"}, "what is forgotten is there for the task that says so"
    assert values.complete(assignment(use={"a": b"one"}))[1] == [b"one"]

    values.complete(assignment({"a": "1"}, keep={"a": b"one"}))
    values.clear()
    assert values.complete(assignment(use={"a": b"one"}))[1] == [b"one"]


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, -0.0, 1.5, 2**80, True, None, "text \ud800 \u0000 é"], "": {"": []}},
        "text",
        [],
        12345678901234567890123,
    ],
)
def test_each_task_has_objects_of_its_own(value: Any) -> None:
    kept = KeptValue(payload_pb2.Payload(json=json.dumps(value)))
    for _ in range(5):
        loaded = kept.load()
        assert json.dumps(loaded) == json.dumps(value)
        if isinstance(loaded, dict):
            loaded["a"].append("changed")
            loaded["new"] = 1
        if isinstance(loaded, list):
            loaded.append("changed")


def test_sends_of_a_kept_value_are_sends() -> None:
    kept = KeptValue(codec.to_payload([Send("node", {"a": [1]})]))
    for _ in range(4):
        (send,) = kept.load()
        assert (send.node, send.arg) == ("node", {"a": [1]})
        send.arg["a"].append(2)


class State(TypedDict, total=False):
    documents: list[dict[str, Any]]
    done: list[str]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[pb.KeptValues]:
    """What the server says of values, task by task."""
    complete, all_of_them = KeptValues.complete, []

    def record(values: KeptValues, given: pb.TaskAssignment) -> Any:
        copied = pb.KeptValues()
        copied.CopyFrom(given.kept)
        all_of_them.append(copied)
        return complete(values, given)

    monkeypatch.setattr(KeptValues, "complete", record)
    return all_of_them


def chain(address: str, name: str, nodes: dict[str, Callable[[State], State]], **limits: int) -> Any:
    builder = StateGraph(State)
    for node, code in nodes.items():
        builder.add_node(node, code)
    for source, target in zip([START, *nodes], [*nodes, END], strict=True):
        builder.add_edge(source, target)
    return builder.compile(server=address, name=name, worker=WorkerLimits(**limits) if limits else True)


def documents(mark: str) -> list[dict[str, Any]]:
    return [{"id": i, "text": mark * 500} for i in range(20)]


def spoils(state: State) -> State:
    """A node that changes what it was given."""
    state["documents"][0]["text"] = "changed"
    state["documents"].append({})
    return {}


def counts(state: State) -> State:
    assert state["documents"] in (documents("a"), documents("b"))
    return {"done": [*state.get("done", []), state["documents"][0]["text"][0]]}


def test_a_value_is_sent_once(server: DevServer, seen: list[pb.KeptValues]) -> None:
    nodes = {"a": counts, "b": spoils, "c": counts, "d": spoils, "e": counts}
    given = chain(server.address, "kept", nodes).invoke({"documents": documents("a")})
    assert given == {"documents": documents("a"), "done": ["a", "a", "a"]}
    digest = hashlib.sha256(codec.dumps(documents("a")).encode()).digest()
    assert [dict(kept.keep) for kept in seen] == [{"documents": digest}, {}, {}, {}, {}]
    assert [dict(kept.use) for kept in seen] == [{}, *[{"documents": digest}] * 4]


def test_a_worker_that_keeps_nothing_gets_all_values(server: DevServer, seen: list[pb.KeptValues]) -> None:
    graph = chain(server.address, "kept-nothing", {"a": counts, "b": counts}, kept_bytes=0)
    assert graph.invoke({"documents": documents("a")})["done"] == ["a", "a"]
    assert seen == [pb.KeptValues(), pb.KeptValues()]


def test_values_make_place(server: DevServer, seen: list[pb.KeptValues]) -> None:
    def changes(state: State) -> State:
        return {"documents": documents("b" if state["documents"] == documents("a") else "a")}

    nodes = {"a": counts, "b": changes, "c": counts, "d": changes, "e": counts}
    graph = chain(server.address, "kept-one", nodes, kept_bytes=15_000)
    assert graph.invoke({"documents": documents("a")})["done"] == ["a", "b", "a"]
    assert [len(kept.forget) for kept in seen] == [0, 0, 1, 0, 1]


def test_a_worker_that_has_lost_a_value_gets_the_task_again(server: DevServer, seen: list[pb.KeptValues]) -> None:
    def loses(state: State) -> State:
        for session in sessions.list_open():
            session._tasks.kept.clear()
        return {}

    graph = chain(server.address, "kept-lost", {"a": counts, "b": loses, "c": counts, "d": counts})
    assert graph.invoke({"documents": documents("a")})["done"] == ["a", "a", "a"]
    assert [bool(kept.use) for kept in seen] == [False, True, True, False, False], "once with and once without"
    assert [bool(kept.keep) for kept in seen] == [True, False, False, False, True]


def test_a_new_stream_begins_without_values(server: DevServer, seen: list[pb.KeptValues]) -> None:
    relay = Relay(int(server.address.rpartition(":")[2]))

    cuts = [relay.cut]

    def breaks(state: State) -> State:
        if cuts:
            cuts.pop()()
        return {}

    graph = chain(relay.address, "kept-reconnect", {"a": counts, "b": counts, "c": breaks, "d": counts})
    for number in range(2):  # a result that was under way may get the next task of the old stream
        thread = {"configurable": {"thread_id": f"kept-reconnect-{number}"}}
        graph.invoke({"documents": documents("a")}, thread)
        assert graph.get_state(thread).values["done"] == ["a", "a", "a"]
    assert [dict(kept.keep) for kept in seen[:3]] == [dict(seen[0].keep), {}, {}]
    assert sum(1 for kept in seen[3:] if kept.keep) == 1


def test_messages_of_a_kept_value_are_messages(server: DevServer) -> None:
    class Chat(TypedDict, total=False):
        messages: list[HumanMessage]
        done: int

    def node(state: Chat) -> Chat:
        assert isinstance(state["messages"][0], HumanMessage)
        state["messages"][0].content = "changed"
        return {"done": len(state["messages"][1].content)}

    builder = StateGraph(Chat)
    for name in "abcd":
        builder.add_node(name, node)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", "d")
    graph = builder.compile(server=server.address, name="kept-messages")
    given = graph.invoke({"messages": [HumanMessage("x" * 9000), HumanMessage("yy")]})
    assert given["done"] == 2
    assert given["messages"][0].content == "x" * 9000
