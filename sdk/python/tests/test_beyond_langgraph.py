"""What is beyond LangGraph: memos, keys, scopes, tools that ask."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import pytest

from graphd import END, START, InMemorySaver, StateGraph, amemo, get_stream_writer, interrupt, memo
from graphd.dev import DevServer
from graphd.errors import GraphdError, InterruptDismissed, NonDeterministicNode
from graphd.graph import MessagesState
from graphd.messages import AIMessage
from graphd.prebuilt import (
    Tool,
    ToolNode,
    add_human_in_the_loop,
    repair_chat_history,
    tools_condition,
    validate_chat_history,
)
from graphd.runtime.effect import idempotency_key
from graphd.runtime.replay import Place
from graphd.types import Command, RetryPolicy


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def one_node(node: Any, server: DevServer, name: str) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def test_memo_runs_once(server: DevServer) -> None:
    calls: list[str] = []

    def charge() -> str:
        calls.append("charge")
        return f"receipt {len(calls)}"

    def node(state: State) -> dict[str, Any]:
        receipt = memo("charge", charge)
        first = interrupt("first?")
        mail = memo("mail", lambda: calls.append("mail"))
        return {"log": [receipt, first, interrupt("second?"), str(mail)]}

    graph = one_node(node, server, "memo")
    graph.invoke({"log": []}, config("memo-1"))
    graph.invoke(Command(resume="A"), config("memo-1"))
    assert graph.invoke(Command(resume="B"), config("memo-1")) == {"log": ["receipt 1", "A", "B", "None"]}
    assert calls == ["charge", "mail"]


def test_a_memo_is_given_the_same_key_on_every_attempt(server: DevServer) -> None:
    given: list[str] = []

    def charge(amount: int = 3, *, idempotency_key: str) -> int:
        given.append(idempotency_key)
        if len(given) < 3:
            raise ConnectionError("before the record")
        return amount

    async def later(idempotency_key: str) -> str:
        return idempotency_key

    def node(state: State) -> dict[str, Any]:
        return {"log": [str(memo("charge", charge)), str(memo("plain", lambda n=1: n))]}

    async def follow(state: State) -> dict[str, Any]:
        return {"log": [await amemo("charge", later), await amemo("charge", later)]}

    builder = StateGraph(State)
    builder.add_node("node", node, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    builder.add_node("follow", follow).add_edge(START, "node").add_edge("node", "follow")
    graph = builder.compile(InMemorySaver(server=server.address), name="keyed-memo")
    log = graph.invoke({"log": []}, config("keyed-memo-1"))["log"]
    assert log[:2] == ["3", "1"]
    assert len(given) == 3
    assert len({*given, *log[2:]}) == 3, "one key for each memo"
    assert all(len(key) == 32 for key in given)


def test_the_idempotency_key_is_that_of_every_language() -> None:
    place = Place("call/ü", "charge", 2)
    assert idempotency_key("ticket-1", "4e25bf63", place) == "2e511abe24e0685900e632224b78d16c"


async def test_memo_in_async_nodes(server: DevServer) -> None:
    calls: list[int] = []

    async def fetch() -> int:
        await asyncio.sleep(0)
        calls.append(1)
        return 7

    async def node(state: State) -> dict[str, Any]:
        number = await amemo("fetch", fetch)
        return {"log": [str(number), interrupt("go?")]}

    graph = one_node(node, server, "amemo")
    asked = await graph.ainvoke({"log": []}, config("amemo-1"))
    assert asked["__interrupt__"][0].value == "go?"
    assert await graph.ainvoke(Command(resume="yes"), config("amemo-1")) == {"log": ["7", "yes"]}
    assert calls == [1]


def test_a_key_keeps_its_answer_when_the_code_moves(server: DevServer) -> None:
    order = [["a"], ["b", "a"]]

    def node(state: State) -> dict[str, Any]:
        return {"log": [interrupt(f"{key}?", key=key) for key in order[0]]}

    graph = one_node(node, server, "keys")
    graph.invoke({"log": []}, config("keys-1"))
    order.pop(0)
    asked = graph.invoke(Command(resume="A"), config("keys-1"))
    assert asked["__interrupt__"][0].value == "b?"
    assert graph.invoke(Command(resume="B"), config("keys-1")) == {"log": ["B", "A"]}


def test_a_question_that_moved_is_refused(server: DevServer) -> None:
    keyed = [False, True]

    def node(state: State) -> dict[str, Any]:
        interrupt("plain") if not keyed.pop(0) else interrupt("keyed", key="k")
        return {}

    graph = one_node(node, server, "moved")
    graph.invoke({"log": []}, config("moved-1"))
    with pytest.raises(NonDeterministicNode, match="number 1"):
        graph.invoke(Command(resume="A"), config("moved-1"))


def mail(to: str, text: str) -> str:
    """Sends a mail."""
    return f"mailed {to}: {text}"


def agent(calls: list[dict[str, Any]]) -> Any:
    def model(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1]
        if last.type == "human":
            return {"messages": [AIMessage("", id="ai1", tool_calls=calls)]}
        return {"messages": [AIMessage("done", id="ai2")]}

    return model


def tool_graph(server: DevServer, tools: list[Any], calls: list[dict[str, Any]], name: str) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("model", agent(calls))
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(InMemorySaver(server=server.address), name=name)


def call(number: int, **arguments: Any) -> dict[str, Any]:
    return {"name": "mail", "args": arguments, "id": f"call{number}", "type": "tool_call"}


def test_each_tool_call_gets_its_own_answer(server: DevServer) -> None:
    calls = [call(1, to="ann", text="hi"), call(2, to="bob", text="ho"), call(3, to="cid", text="hu")]
    graph = tool_graph(server, [add_human_in_the_loop(mail)], calls, "tools")
    asked = graph.invoke({"messages": [("user", "write to all")]}, config("tools-1"))
    questions = {q.value["action_request"]["args"]["to"]: q.id for q in asked["__interrupt__"]}
    assert list(questions) == ["ann", "bob", "cid"]
    assert len(set(questions.values())) == 3
    answers = {
        questions["cid"]: {"type": "response", "args": "not now"},
        questions["ann"]: {"type": "accept"},
        questions["bob"]: [{"type": "edit", "args": {"args": {"to": "bob", "text": "dear bob"}}}],
    }
    done = graph.invoke(Command(resume=answers), config("tools-1"))
    replies = {m.tool_call_id: m.content for m in done["messages"] if m.type == "tool"}
    assert replies == {"call1": "mailed ann: hi", "call2": "mailed bob: dear bob", "call3": "not now"}
    assert done["messages"][-1].content == "done"


def test_a_finished_call_is_not_run_again_when_another_asks(server: DevServer) -> None:
    ran: list[str] = []

    def note(text: str) -> str:
        ran.append(text)
        get_stream_writer()(f"noting {text}")
        return f"noted {text}"

    def twice(to: str) -> str:
        ran.append(f"{to}:{interrupt('sure?')}")
        get_stream_writer()(f"mailing {to}")
        ran.append(f"{to}:{interrupt('really?')}")
        return f"mailed {to}"

    calls = [
        {"name": "note", "args": {"text": "a"}, "id": "c1", "type": "tool_call"},
        {"name": "review", "args": {"text": "b"}, "id": "c2", "type": "tool_call"},
        {"name": "twice", "args": {"to": "ann"}, "id": "c3", "type": "tool_call"},
    ]
    review = replace(Tool.of(note), name="review")
    tools = [note, add_human_in_the_loop(review), twice]
    graph = tool_graph(server, tools, calls, "kept")
    events: list[Any] = []

    def go(given: Any) -> dict[str, str]:
        asked: dict[str, str] = {}
        for mode, item in graph.stream(given, config("kept-1"), stream_mode=["updates", "custom"]):
            if mode == "custom":
                events.append(item)
            for question in item.get("__interrupt__", ()) if mode == "updates" else ():
                asked[question.id] = question.value
        return asked

    asked = go({"messages": [("user", "go")]})
    assert (ran, events, len(asked)) == (["a"], ["noting a"], 2)
    asked = go(Command(resume={id: "yes" if value == "sure?" else {"type": "accept"} for id, value in asked.items()}))
    assert (sorted(ran), sorted(events)) == (["a", "ann:yes", "b"], ["mailing ann", "noting a", "noting b"])
    assert list(asked.values()) == ["really?"]
    go(Command(resume="ok"))
    assert sorted(ran) == ["a", "ann:ok", "ann:yes", "ann:yes", "b"]
    assert sorted(events) == ["mailing ann", "noting a", "noting b"]
    replies = [m.content for m in graph.get_state(config("kept-1")).values["messages"] if m.type == "tool"]
    assert replies == ["noted a", "noted b", "mailed ann"]


def test_a_dismissed_question_raises_in_the_node(server: DevServer) -> None:
    from graphd._gen.v1 import graph_service_pb2 as gs
    from graphd.transport.server import call_unary, server_at

    def node(state: State) -> dict[str, Any]:
        try:
            interrupt("may I?")
        except InterruptDismissed as error:
            return {"log": [f"dismissed: {error}"]}
        return {"log": ["allowed"]}

    graph = one_node(node, server, "dismissed")
    asked = graph.invoke({"log": []}, config("dismissed-1"))
    request = gs.ResumeRunRequest()
    request.resume.thread_id = "dismissed-1"
    answer = request.resume.responses.add(interrupt_id=asked["__interrupt__"][0].id)
    answer.dismissal.reason = "on holiday"
    stubs = server_at(server.address).stubs.graphs
    call_unary(stubs.ResumeRun, request)
    run = call_unary(stubs.WaitRun, gs.WaitRunRequest(thread_id="dismissed-1"))
    assert run.output.json == '{"log":["dismissed: on holiday"]}'


def test_repair_of_a_chat() -> None:
    left = AIMessage("", id="1", tool_calls=[call(1, to="ann", text="hi")])
    chat = [{"type": "human", "content": "a"}, left, {"type": "human", "content": "b"}]
    with pytest.raises(ValueError, match="INVALID_CHAT_HISTORY"):
        validate_chat_history(chat)
    repaired = repair_chat_history(chat)
    validate_chat_history(repaired)
    assert [m["type"] for m in repaired] == ["human", "ai", "tool", "human"]


def test_copied_thread_goes_on_by_itself(server: DevServer) -> None:
    calls: list[str] = []

    def node(state: State) -> dict[str, Any]:
        memo("charge", lambda: calls.append("charge"))
        return {"log": [interrupt("which?")]}

    graph = one_node(node, server, "copied")
    graph.invoke({"log": ["in"]}, config("copied-1"))
    saver = InMemorySaver(server=server.address)
    saver.copy_thread("copied-1", "copied-2")
    assert [s.next for s in graph.get_state_history(config("copied-2"))] == [
        s.next for s in graph.get_state_history(config("copied-1"))
    ]
    assert graph.invoke(Command(resume="A"), config("copied-1")) == {"log": ["in", "A"]}
    assert graph.invoke(Command(resume="B"), config("copied-2")) == {"log": ["in", "B"]}
    assert calls == ["charge"]
    with pytest.raises(GraphdError, match="exists"):
        saver.copy_thread("copied-1", "copied-2")
    asyncio.run(saver.acopy_thread("copied-2", "copied-3"))
    assert graph.get_state(config("copied-3")).values == {"log": ["in", "B"]}


def test_pruned_thread_goes_on(server: DevServer) -> None:
    graph = one_node(lambda state: {"log": [interrupt("which?")]}, server, "pruned")
    for n in range(3):
        graph.invoke({"log": [f"in {n}"]}, config("pruned-1"))
        graph.invoke(Command(resume=f"out {n}"), config("pruned-1"))
    values = graph.get_state(config("pruned-1")).values
    saver = InMemorySaver(server=server.address)
    saver.prune(["pruned-1"])
    assert len(list(graph.get_state_history(config("pruned-1")))) <= 2, "the newest, and what the run began with"
    assert graph.get_state(config("pruned-1")).values == values
    graph.invoke({"log": ["in 3"]}, config("pruned-1"))
    asyncio.run(saver.aprune(["pruned-1"]))
    assert graph.invoke(Command(resume="out 3"), config("pruned-1"))["log"][-1] == "out 3"
    saver.prune(["pruned-1"], strategy="delete")
    assert graph.get_state(config("pruned-1")).values == {}
    with pytest.raises(ValueError, match="keep_latest"):
        saver.prune(["pruned-1"], strategy="some")
