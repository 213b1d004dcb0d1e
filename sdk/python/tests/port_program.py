"""A program for LangGraph: a shop that takes orders, asks people and thinks again.

test_port.py runs it twice: as it is, and for graphd, with other imports and
another compile(). It tells what it sees in ``out``, as JSON.
"""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

out: list[Any] = []


def longest(left: str, right: str) -> str:
    return max(left, right, key=len)


class Order(TypedDict, total=False):
    text: str
    customer: str
    notes: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    title: Annotated[str, longest]
    verdict: str


class Item(TypedDict, total=False):
    name: str
    notes: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    price: int


# A subgraph that asks, once per item of the order.


def look_up(item: Item) -> Item:
    return {"price": len(item["name"]) * 10}


def approve(item: Item) -> Item:
    answer = interrupt({"approve": item["name"], "price": item["price"]})
    return {"notes": [f"{item['name']}: {answer}"], "total": item["price"] if answer == "ok" else 0}


item_builder = StateGraph(Item)
item_builder.add_node("look_up", look_up)
item_builder.add_node("approve", approve)
item_builder.add_edge(START, "look_up")
item_builder.add_edge("look_up", "approve")
item_graph = item_builder.compile()

# The shop.

attempts = {"flaky": 0}


def intake(order: Order) -> Order:
    get_stream_writer()({"reading": order["text"]})
    who = interrupt("who asks?")
    why = interrupt(f"why, {who}?")
    return {"customer": who, "notes": [f"{who} because {why}"], "title": why}


def split(order: Order) -> list[Send]:
    return [Send("item", {"name": name}) for name in order["text"].split()]


def flaky(order: Order) -> Order:
    attempts["flaky"] += 1
    if attempts["flaky"] == 1:
        raise ConnectionError("try again")
    return {"notes": ["flaky"], "title": "a longer title than before"}


def stock(order: Order) -> Order:
    return {"notes": ["stock " + interrupt("in stock?")]}


def credit(order: Order) -> Order:
    return {"notes": ["credit " + interrupt("solvent?")], "title": "short"}


def route(order: Order) -> Literal["large", "small"]:
    return "large" if order["total"] > 60 else "small"


def large(order: Order) -> Command[Literal["paid", "__end__"]]:
    verdict = "refuse" if any("no" in note for note in order["notes"]) else "pay"
    return Command(update={"verdict": verdict}, goto="paid" if verdict == "pay" else END)


def small(order: Order) -> Order:
    return {"verdict": "free"}


def paid(order: Order) -> Order:
    return {"notes": ["paid"]}


builder = StateGraph(Order)
builder.add_node("intake", intake)
builder.add_node("item", item_graph)
builder.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
builder.add_node("stock", stock)
builder.add_node("credit", credit)
builder.add_node("join", lambda order: {"notes": ["joined"]})
builder.add_node("large", large)
builder.add_node("small", small)
builder.add_node("paid", paid)
builder.add_edge(START, "intake")
builder.add_conditional_edges("intake", split, ["item"])
builder.add_edge("item", "flaky")
builder.add_edge("flaky", "stock")
builder.add_edge("flaky", "credit")
builder.add_edge(["stock", "credit"], "join")
builder.add_conditional_edges("join", route)
graph = builder.compile(checkpointer=InMemorySaver())

config: dict[str, Any] = {"configurable": {"thread_id": "1"}}


def go(given: Any, at: dict[str, Any] = config) -> dict[str, Any]:
    """Runs, tells what came of it, and returns the questions: id → value."""
    result = graph.invoke(given, at)
    asked = sorted(result.pop("__interrupt__", []), key=lambda question: str(question.value))
    out.append({"state": result, "asked": [question.value for question in asked]})
    return {question.id: question.value for question in asked}


# Two questions of one node, then one per item, then two of nodes side by side.
go({"text": "lamp chair", "total": 0})
out.append([t.name for t in graph.get_state(config).tasks])
go(Command(resume="ann"))
questions = go(Command(resume="it broke"))
snapshot = graph.get_state(config, subgraphs=True)
out.append(sorted((t.name, t.state.next, t.state.values["price"]) for t in snapshot.tasks))
questions = go(Command(resume=dict.fromkeys(questions, "ok")))
first = next(id for id, value in questions.items() if value == "in stock?")
questions = go(Command(resume={first: "yes"}))
go(Command(resume="yes"))
out.append({"flaky": attempts["flaky"], "next": graph.get_state(config).next})

# What happened.
history = list(graph.get_state_history(config))
out.append([(s.metadata["step"], s.metadata["source"], s.next, s.values.get("verdict")) for s in history])
out.append([[t.name for t in s.tasks] for s in history])

# What if the answers had been others: a fork, edited as if nodes had written.
before = next(s for s in history if s.next == ("join",))
fork = graph.update_state(before.config, {"notes": ["no stock after all"]}, as_node="join")
out.append({"next": graph.get_state(fork).next, "source": graph.get_state(fork).metadata["source"]})
go(None, fork)
out.append([s.metadata["source"] for s in graph.get_state_history(config)])

# What if a question had been asked again: replay from before it.
before = next(s for s in history if s.next == ("intake",))
questions = go(None, before.config)
out.append(list(questions.values()))

# Streams.
other: dict[str, Any] = {"configurable": {"thread_id": "2"}}
for mode, part in graph.stream({"text": "mug", "total": 0}, other, stream_mode=["values", "updates", "custom"]):
    if "__interrupt__" in part:
        part = [question.value for question in part["__interrupt__"]]
    out.append((mode, part))
graph.invoke(Command(resume="bob"), other)
for namespace, part in graph.stream(Command(resume="gift"), other, stream_mode="updates", subgraphs=True):
    shown = [q.value for q in part["__interrupt__"]] if "__interrupt__" in part else part
    out.append([[level.split(":")[0] for level in namespace], shown])

# Errors.
short: dict[str, Any] = {"configurable": {"thread_id": "3"}, "recursion_limit": 1}
empty: dict[str, Any] = {"configurable": {"thread_id": "4"}}
for given, at in [({"text": "x"}, short), (Command(resume="a"), short), (Command(resume="b"), short), ({}, empty)]:
    try:
        graph.invoke(given, at)
        out.append("no error")
    except (GraphRecursionError, InvalidUpdateError, KeyError) as error:
        out.append(type(error).__name__)
