"""What a node may do to its questions, and what graphd makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph, amemo, interrupt, memo
from graphd.dev import DevServer
from graphd.errors import GraphdError, NonDeterministicNode, ParentCommand
from graphd.runtime.replay import Answer, Place, Question, Replay
from graphd.runtime.task import CurrentTask, enter_task
from graphd.types import Command


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def compiled(node: Any, server: DevServer, name: str) -> Any:
    builder = StateGraph(State).add_node("node", node).add_edge(START, "node")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


# Questions that are caught.


def ends(kind: str) -> Callable[[], Any]:
    def command() -> Any:
        raise ParentCommand(Command(graph=Command.PARENT, update={"log": ["parent"]}))

    return {"returns": lambda: {"log": ["unasked"]}, "leaves": command}[kind]


@pytest.mark.parametrize("kind", ["returns", "leaves"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_question_that_is_caught_is_asked_all_the_same(server: DevServer, kind: str, is_async: bool) -> None:
    recorded: list[str] = []

    def node(state: State) -> Any:
        try:
            answer = interrupt("sure?")
        except BaseException:
            with contextlib.suppress(BaseException):
                memo("after", lambda: recorded.append("x"))
            return ends(kind)()
        return {"log": [answer]}

    async def anode(state: State) -> Any:
        return node(state)

    inner = StateGraph(State).add_node("node", anode if is_async else node).add_edge(START, "node").compile()
    graph = compiled(inner, server, f"caught-{kind}-{is_async}")
    try:
        stopped = graph.invoke({"log": []}, config(f"caught-{kind}-{is_async}"))
        assert [i.value for i in stopped["__interrupt__"]] == ["sure?"]
        assert stopped["log"] == []
        assert not recorded, "nothing new happens behind a question"
        assert graph.invoke(Command(resume="yes"), config(f"caught-{kind}-{is_async}"))["log"] == ["yes"]
    finally:
        graph.detach()


# Code that changed.

NOWHERE = Place("", "k", 0)


def test_a_memo_that_became_a_question_names_both() -> None:
    replay = Replay({}, {NOWHERE: 1})
    with pytest.raises(
        NonDeterministicNode, match="had memo number 1 of key 'k', now it has question number 1 of key 'k'"
    ):
        replay.ask_question("", "k", "?", {})
    assert not replay.questions


def test_a_question_that_became_a_memo_names_both() -> None:
    replay = Replay({NOWHERE: Answer(1)}, {})
    with pytest.raises(
        NonDeterministicNode, match="had question number 1 of key 'k', now it has memo number 1 of key 'k'"
    ):
        replay.look_up_memo("", "k")


def test_a_difference_that_is_caught_stays() -> None:
    replay = Replay({}, {NOWHERE: 1})
    with pytest.raises(NonDeterministicNode) as first:
        replay.ask_question("", "k", "?", {})
    for go_on in (
        lambda: replay.ask_question("", "", "?", {}),
        lambda: replay.look_up_memo("s", "other"),
        replay.check_finished,
    ):
        with pytest.raises(NonDeterministicNode) as again:
            go_on()
        assert again.value is first.value
    assert not replay.questions


def test_a_question_out_of_its_scope_is_another_question() -> None:
    replay = Replay({Place("a", "", 0): Answer("A"), Place("", "", 0): Answer("root")}, {})
    assert isinstance(replay.ask_question("b", "", "?", {}), Question)
    assert replay.ask_question("a", "", "?", {}) == Answer("A")
    assert replay.ask_question("", "", "?", {}) == Answer("root")


class Lost:
    """A worker that has lost its task."""

    def confirm_lease(self) -> None:
        raise GraphdError("lost")

    async def aconfirm_lease(self) -> None:
        raise GraphdError("lost")


def test_nothing_happens_in_the_name_of_a_task_that_is_lost() -> None:
    done: list[str] = []

    async def effect() -> None:
        done.append("x")

    async def run() -> None:
        enter_task(CurrentTask(Lost(), Replay({}, {}), None))  # type: ignore[arg-type]
        with pytest.raises(GraphdError, match="lost"):
            memo("k", lambda: done.append("x"))
        with pytest.raises(GraphdError, match="lost"):
            await amemo("k", effect)

    contextvars.copy_context().run(asyncio.run, run())
    assert not done


# The caller's surroundings.

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.mark.parametrize("is_async", [False, True])
def test_nodes_see_the_context_variables_of_their_caller(server: DevServer, is_async: bool) -> None:
    def node(state: State) -> dict[str, Any]:
        seen = who.get()
        who.set("the node")
        return {"log": [seen]}

    async def anode(state: State) -> dict[str, Any]:
        return node(state)

    graph = compiled(anode if is_async else node, server, f"variables-{is_async}")
    token = who.set("me")
    try:
        if is_async:
            said = asyncio.run(graph.ainvoke({"log": []}, config(f"variables-{is_async}")))
        else:
            said = graph.invoke({"log": []}, config(f"variables-{is_async}"))
        assert said == {"log": ["me"]}
        assert who.get() == "me"
    finally:
        who.reset(token)
        graph.detach()


def test_who_stops_waiting_stops_the_coroutine_of_the_node(server: DevServer) -> None:
    async def run() -> list[str]:
        begun, ended, log = asyncio.Event(), asyncio.Event(), list[str]()

        async def node(state: State) -> dict[str, Any]:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                log.append("cancelled")
                raise
            finally:
                ended.set()
            return {}

        graph = compiled(node, server, "stopped")
        try:
            call = asyncio.ensure_future(graph.ainvoke({"log": []}, config("stopped-1")))
            await asyncio.wait_for(begun.wait(), 60)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(ended.wait(), 60)
        finally:
            graph.detach()
        return log

    assert asyncio.run(run()) == ["cancelled"]


def test_a_question_that_is_caught_and_asked_again_is_one_question() -> None:
    replay = Replay({}, {})
    first = replay.ask_question("", "", "go on?", {})
    assert replay.ask_question("", "", "go on?", {}) is first, "a retry around it"
    assert replay.ask_question("", "", "another?", {}) is not first
    assert replay.ask_question("", "key", "go on?", {}) is not first
    assert replay.ask_question("scope", "", "go on?", {}) is not first
    assert [q.place for q in replay.questions] == [
        Place("", "", 0),
        Place("", "", 2),
        Place("", "key", 0),
        Place("scope", "", 0),
    ]


def test_the_answer_is_for_the_first_time_it_is_asked() -> None:
    replay = Replay({Place("", "", 0): Answer("yes")}, {})
    assert replay.ask_question("", "", "go on?", {}) == Answer("yes")
    assert isinstance(replay.ask_question("", "", "go on?", {}), Question), "the next one"


def test_a_task_repeats_only_what_its_own_scope_did() -> None:
    """Items of a task that begins anew show, whatever other tasks have still to see."""
    replay = Replay({Place("b", "", 0): Answer("yes")}, {})
    assert replay.is_muted("a")
    replay.begin_scope("a")
    replay.begin_scope("b")
    assert not replay.is_muted("a")
    assert not replay.is_muted("a/call")
    assert replay.is_muted("b")
    assert replay.is_muted("")
    assert replay.ask_question("b", "", "sure?", {}) == Answer("yes")
    assert not replay.is_muted("b")
    assert not replay.is_muted("")


def test_a_scope_that_begins_anew_meets_its_memos_and_answers_again() -> None:
    replay = Replay({Place("a", "", 0): Answer("yes", seen="")}, {})
    place = Place("a", "key", 0)
    assert replay.look_up_memo("a", "key") == (place, False, None)
    replay.keep_memo(place, "value")
    assert replay.ask_question("a", "", "sure?", {}) == Answer("yes")
    replay.restart_scope("a")
    assert replay.look_up_memo("a", "key") == (place, True, "value")
    assert replay.ask_question("a", "", "sure?", {}) == Answer("yes")
    assert replay.look_up_memo("ab", "key")[0].index == 0
    replay.restart_scope("a")
    assert replay.look_up_memo("ab", "key")[0].index == 1


def test_questions_of_tasks_are_in_the_order_of_their_calls() -> None:
    replay = Replay({}, {})
    for scope in ("first", "second", "second/inner"):
        replay.begin_scope(scope)
    for scope in ("second/inner", "second", "first/tool", "", "first"):
        replay.ask_question(scope, "", scope, {})
    replay.order_questions_by_call()
    assert [q.place.scope for q in replay.questions] == ["", "first/tool", "first", "second", "second/inner"]
    assert replay.asks_within("second")
    assert not replay.asks_within("sec")
