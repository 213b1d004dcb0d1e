"""The graphs of the programs."""

from __future__ import annotations

import operator
import threading
import time
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from graphd import END, START, StateGraph, interrupt
from graphd.compiled.attached_graph import AttachedGraph
from graphd.config import get_stream_writer
from graphd.graph import MessagesState


class Review(TypedDict, total=False):
    """A request that a person approves."""

    request: str
    decision: Any
    result: str
    log: Annotated[list, operator.add]


def analyze(state: Review) -> dict:
    return {"log": ["analyze " + state.get("request", "?")]}


def human(state: Review) -> dict:
    answer = interrupt({"question": "approve?", "request": state.get("request")})
    return {"decision": answer, "log": ["human"]}


def execute(state: Review) -> dict:
    return {"result": f"done {state.get('decision')}", "log": ["execute"]}


class Twins(TypedDict, total=False):
    """Two questions at once."""

    topic: str
    answers: Annotated[list, operator.add]


def ask_a(state: Twins) -> dict:
    return {"answers": ["a=" + str(interrupt({"ask": "a"}))]}


def ask_b(state: Twins) -> dict:
    return {"answers": ["b=" + str(interrupt({"ask": "b"}))]}


def join(state: Twins) -> dict:
    return {"answers": ["join"]}


class Half(TypedDict, total=False):
    """A question beside a node that is done."""

    topic: str
    quick: str
    answer: str


def be_quick(state: Half) -> dict:
    return {"quick": "done"}


def ask_slowly(state: Half) -> dict:
    return {"answer": interrupt("go on?")}


failures: dict[str | None, threading.Event] = {}
"""When the runs about some topics are to fail. Each does so once."""


def fail_once(state: Half) -> dict:
    due = failures.pop(state.get("topic"), None)
    if due is None:
        return {"quick": "done"}
    due.wait(60)
    raise ValueError("broken")


class Inbox(TypedDict, total=False):
    """A mail to send, with a question in the form of Agent Inbox."""

    email: str
    outcome: Any


def triage(state: Inbox) -> dict:
    request = {
        "action_request": {"action": "send_email", "args": {"to": "ann", "body": state.get("email", "")}},
        "config": {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": True},
        "description": "Send it?",
    }
    response = interrupt([request])
    return {"outcome": response[0] if isinstance(response, list) else response}


def call_model(state: MessagesState) -> dict:
    last = state["messages"][-1]
    text = last.content if isinstance(last.content, str) else "".join(p.get("text", "") for p in last.content)
    if "tool" in text:
        calls = [{"name": "send", "args": {"to": "ann"}, "id": "call-1"}]
        return {"messages": [AIMessage("", id="ai-tool", tool_calls=calls)]}
    model = GenericFakeChatModel(messages=iter([AIMessage("You said: " + text)]))
    return {"messages": [model.invoke(state["messages"])]}


def call_tools(state: MessagesState) -> dict:
    call = state["messages"][-1].tool_calls[0]
    asked = {
        "action_requests": [{"name": call["name"], "args": call["args"], "description": "send?"}],
        "review_configs": [{"action_name": call["name"], "allowed_decisions": ["approve", "edit", "reject"]}],
    }
    answer = interrupt(asked)
    return {"messages": [ToolMessage(str(answer["decisions"][0]["type"]), tool_call_id=call["id"], id="tool-1")]}


def finish(state: MessagesState) -> dict:
    return {"messages": [AIMessage("finished", id="ai-final")]}


def route_model(state: MessagesState) -> str:
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


class Slow(TypedDict, total=False):
    """Steps that take time."""

    steps: int
    seconds: float
    seen: Annotated[list, operator.add]


def tick(state: Slow) -> dict:
    get_stream_writer()({"progress": len(state.get("seen", []))})
    time.sleep(float(state.get("seconds", 0.3)))
    return {"seen": [len(state.get("seen", []))]}


def has_more(state: Slow) -> str:
    return "tick" if len(state.get("seen", [])) % int(state.get("steps", 3)) else END


class Fail(TypedDict, total=False):
    """A node that fails."""

    x: int
    log: Annotated[list, operator.add]


def succeed(state: Fail) -> dict:
    return {"log": ["ok"]}


def fail(state: Fail) -> dict:
    raise ValueError(f"boom {state.get('x')}")


class Chain(TypedDict, total=False):
    """Ten nodes in a row."""

    n: int


def increment(state: Chain) -> dict:
    return {"n": state.get("n", 0) + 1}


def build_graphs(server: str) -> list[AttachedGraph]:
    """The graphs, attached to a server."""
    review = StateGraph(Review)
    review.add_sequence([analyze, human, execute])
    review.add_edge(START, "analyze")

    twins = StateGraph(Twins)
    for node in (ask_a, ask_b, join):
        twins.add_node(node)
    twins.add_edge(START, "ask_a")
    twins.add_edge(START, "ask_b")
    twins.add_edge(["ask_a", "ask_b"], "join")

    half = StateGraph(Half)
    for node in (be_quick, ask_slowly):
        half.add_node(node)
        half.add_edge(START, node.__name__)

    halting = StateGraph(Half)
    for node in (fail_once, ask_slowly):
        halting.add_node(node)
        halting.add_edge(START, node.__name__)

    inbox = StateGraph(Inbox)
    inbox.add_node(triage)
    inbox.add_edge(START, "triage")

    agent = StateGraph(MessagesState)
    agent.add_node("model", call_model)
    agent.add_node("tools", call_tools)
    agent.add_node("final", finish)
    agent.add_edge(START, "model")
    agent.add_conditional_edges("model", route_model, ["tools", END])
    agent.add_edge("tools", "final")

    slow = StateGraph(Slow)
    slow.add_node(tick)
    slow.add_edge(START, "tick")
    slow.add_conditional_edges("tick", has_more, ["tick", END])

    failing = StateGraph(Fail)
    failing.add_node("ok", succeed)
    failing.add_node("boom", fail)
    failing.add_edge(START, "ok")
    failing.add_edge("ok", "boom")

    chain = StateGraph(Chain)
    for number in range(10):
        chain.add_node(f"n{number}", increment)
        chain.add_edge(START if number == 0 else f"n{number - 1}", f"n{number}")

    builders = {
        "review": review,
        "twins": twins,
        "half": half,
        "halting": halting,
        "inbox": inbox,
        "agent": agent,
        "slow": slow,
        "fail": failing,
        "chain": chain,
    }
    graphs = [builder.compile(server=server, name=name) for name, builder in builders.items()]
    for graph in graphs:
        graph.attach()
    return graphs
