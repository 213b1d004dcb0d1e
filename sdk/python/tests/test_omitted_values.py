"""What is larger than a message of the server is read from it, or its absence is told: it is never shown as empty."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph, interrupt
from graphd._gen.v1 import event_pb2 as pb
from graphd._gen.v1 import interrupt_pb2, payload_pb2, thread_pb2
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.omitted_values import restore_values
from graphd.client.state_reads import read_state
from graphd.client.translator import Translator
from graphd.dev import DevServer, dev
from graphd.errors import GraphdError, LimitExceededError, OmittedValue
from graphd.types import Command

MOST = 60_000  # bytes of a message
LARGE = 35_000  # of one value, so that two have no room in a message
FLAGS = ["--max-message", str(MOST), "--max-payload", "40000"]


class State(TypedDict, total=False):
    small: str
    one: str
    two: str


class Small(TypedDict):
    small: str


@pytest.fixture(scope="module")
def narrow() -> Iterator[DevServer]:
    """A server whose messages have room for one large value, not for two."""
    with dev(flags=FLAGS) as started:
        yield started


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """A warning that a test does not expect fails it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OmittedValue)
        yield


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def fill_one(state: Small) -> dict[str, Any]:
    return {"one": "1" * LARGE}


def fill_two(state: Small) -> dict[str, Any]:
    return {"two": "2" * LARGE}


WHOLE = {"small": "s", "one": "1" * LARGE, "two": "2" * LARGE}


def filled(server: DevServer, name: str) -> Any:
    """A graph with a state that has no room in a message; its nodes see only a part of it."""
    builder = StateGraph(State)
    builder.add_node("fill_one", fill_one, input_schema=Small).add_node("fill_two", fill_two, input_schema=Small)
    builder.add_edge(START, "fill_one").add_edge("fill_one", "fill_two")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def test_values_are_read_key_by_key(narrow: DevServer) -> None:
    graph = filled(narrow, "omitted-values")
    seen = list(graph.stream({"small": "s"}, config("values"), stream_mode="values"))
    assert seen[-1] == WHOLE
    assert seen[-2] == {"small": "s", "one": "1" * LARGE}


def test_values_are_read_in_async_streams(narrow: DevServer) -> None:
    graph = filled(narrow, "omitted-async")

    async def run() -> list[Any]:
        return [item async for item in graph.astream({"small": "s"}, config("async"), stream_mode="values")]

    assert asyncio.run(run())[-1] == WHOLE


def test_checkpoints_and_states_are_read_key_by_key(narrow: DevServer) -> None:
    graph = filled(narrow, "omitted-states")
    seen = list(graph.stream({"small": "s"}, config("states"), stream_mode="checkpoints"))
    assert seen[-1]["values"] == WHOLE
    state = graph.get_state(config("states"))
    assert (state.values, state.next) == (WHOLE, ())
    assert graph.get_state(seen[-1]["config"]).values == WHOLE


def ask(key: str) -> Any:
    return lambda state: {key: interrupt(key[0] * LARGE)}


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_questions_are_whole(narrow: DevServer, mode: str) -> None:
    builder = StateGraph(State).add_node("a", ask("one")).add_node("b", ask("two"))
    builder.add_edge(START, "a").add_edge(START, "b")
    graph = builder.compile(InMemorySaver(server=narrow.address), name="omitted-questions")
    seen = list(graph.stream({"small": "s"}, config(f"questions-{mode}"), stream_mode=mode))
    asked = {i.value: i.id for item in seen for i in item.get("__interrupt__", ())}
    assert sorted(asked) == ["o" * LARGE, "t" * LARGE]
    answers = {identifier: value[0] for value, identifier in asked.items()}
    done = list(graph.stream(Command(resume=answers), config(f"questions-{mode}"), stream_mode="values"))
    assert done[-1] == {"small": "s", "one": "o", "two": "t"}


def test_a_result_that_no_answer_has_room_for_is_an_error(narrow: DevServer) -> None:
    builder = StateGraph(State).add_node("a", ask("one")).add_node("b", ask("two"))
    builder.add_edge(START, "a").add_edge(START, "b")
    graph = builder.compile(InMemorySaver(server=narrow.address), name="omitted-result")
    with pytest.raises(LimitExceededError, match="more than 60000 bytes"):
        graph.invoke({"small": "s"}, config("result"))


def test_a_result_is_read_key_by_key(narrow: DevServer) -> None:
    assert filled(narrow, "omitted-invoke").invoke({"small": "s"}, config("invoke")) == WHOLE


# What no call has.

PROGRAM = StateGraph(State).add_node("fill_one", fill_one).add_edge(START, "fill_one").compile().program


def omitted(**kind: Any) -> pb.Event:
    return pb.Event(thread_id="t", node="fill_one", step=3, task_id="k", value_omitted=True, **kind)


def translate(event: pb.Event, *modes: str) -> list[Any]:
    translator = Translator(modes, PROGRAM, config("t"), None, lambda at: {}, subgraphs=False)
    return [item.data for item in translator.translate_event(event)]


LOST = {
    "updates": (
        omitted(update=pb.NodeUpdate()),
        "the update of node 'fill_one' in superstep 3 of thread 't' is left out",
    ),
    "values": (omitted(values=pb.StateValues()), "the state of node"),
    "custom": (omitted(custom=pb.CustomEvent()), "a custom event of node"),
    "messages": (omitted(message=pb.MessageDelta()), "a message of node"),
}


@pytest.mark.parametrize("mode", LOST)
def test_what_no_call_has_is_told_and_not_shown(mode: str) -> None:
    event, text = LOST[mode]
    with pytest.warns(OmittedValue, match=text):
        assert translate(event, mode) == []
    assert translate(event, "checkpoints") == [], "a program that did not ask for it is not told"


def test_a_task_without_its_input_is_told() -> None:
    task = omitted(task=pb.TaskChange(phase=pb.TaskChange.PHASE_SCHEDULED))
    with pytest.warns(OmittedValue, match="the input of node"):
        assert [item["input"] for item in translate(task, "tasks")] == [None]
    begun = omitted(task=pb.TaskChange(phase=pb.TaskChange.PHASE_STARTED))
    assert translate(begun, "tasks") == [], "it shows nothing, so nothing is missing"


def test_a_result_without_its_update_is_told() -> None:
    translator = Translator(["tasks"], PROGRAM, config("t"), None, lambda at: {}, subgraphs=False)
    with pytest.warns(OmittedValue, match="the update of node"):
        assert list(translator.translate_event(omitted(update=pb.NodeUpdate()))) == []


class Refusing:
    """Stubs whose calls are refused."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self.threads = self.interrupts = self

    def _refuse(self, request: Any) -> Any:
        kind = LimitExceededError if self._reason == "PAYLOAD_TOO_LARGE" else GraphdError
        raise kind("refused", reason=self._reason)

    GetState = GetInterrupt = _refuse


@pytest.mark.parametrize("reason", ["CHECKPOINT_NOT_FOUND", "PAYLOAD_TOO_LARGE"])
def test_a_state_that_no_call_has_any_more_keeps_its_mark(reason: str) -> None:
    event = omitted(values=pb.StateValues(checkpoint=payload_pb2.CheckpointRef(checkpoint_id="gone")))
    restore_values(Refusing(reason), PROGRAM, event)
    assert event.value_omitted


class Inbox:
    """Stubs that have one question as a whole."""

    def __init__(self, whole: interrupt_pb2.Interrupt) -> None:
        self.threads, self.interrupts, self._whole = None, self, whole

    def GetInterrupt(self, request: ins.GetInterruptRequest) -> interrupt_pb2.Interrupt:
        assert (request.thread_id, request.interrupt_id) == ("t", self._whole.interrupt_id)
        return self._whole


def test_a_question_is_read_from_the_inbox() -> None:
    payloads = {name: payload_pb2.Payload(json=f'"{name}"') for name in ("value", "response", "default_response")}
    whole = interrupt_pb2.Interrupt(interrupt_id="q", task_id="k", message="now", **payloads)
    shown = interrupt_pb2.Interrupt(interrupt_id="q", task_id="k", message="then")
    event = omitted(interrupt=pb.InterruptRaised(interrupts=[shown]))
    restore_values(Inbox(whole), PROGRAM, event)
    (question,) = event.interrupt.interrupts
    assert question.message == "then", "the event says what was, the inbox what is"
    assert {name: getattr(question, name) for name in payloads} == payloads
    ((asked,),) = (item["__interrupt__"] for item in translate(event, "updates"))
    assert (asked.id, asked.value) == ("q", "value")


def test_a_question_that_can_not_be_read_is_not_shown() -> None:
    question = interrupt_pb2.Interrupt(interrupt_id="q", message="sure?")
    event = omitted(interrupt=pb.InterruptRaised(interrupts=[question]))
    with pytest.raises(LimitExceededError):
        restore_values(Refusing("PAYLOAD_TOO_LARGE"), PROGRAM, event)


def test_keys_of_different_moments_are_not_put_together() -> None:
    class Moving:
        """A thread that changes with every look at it."""

        reads = 0

        def GetState(self, request: ts.GetStateRequest) -> thread_pb2.StateSnapshot:
            if not request.keys:
                raise LimitExceededError("too large", reason="PAYLOAD_TOO_LARGE")
            self.reads += 1
            return thread_pb2.StateSnapshot(applied_through=payload_pb2.Cursor(sequence=self.reads))

    with pytest.raises(LimitExceededError, match="too large"):
        read_state(Moving(), PROGRAM, ts.GetStateRequest(thread_id="t"))
