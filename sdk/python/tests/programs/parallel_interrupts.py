"""Parallel interrupts: several people are asked at once, and each answer goes to its question by id."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

out: list[Any] = []


class Trip(TypedDict, total=False):
    travellers: list[str]
    votes: Annotated[list[str], operator.add]
    decision: str


def ask_each(trip: Trip) -> list[Send]:
    return [Send("vote", name) for name in trip["travellers"]]


def vote(name: str) -> dict[str, Any]:
    return {"votes": [f"{name}: {interrupt(f'{name}, sea or hills?')}"]}


def ask_driver(trip: Trip) -> Trip:
    return {"votes": [f"the driver: {interrupt('driver, how far?')}"]}


def decide(trip: Trip) -> Trip:
    seaside = sum("sea" in vote for vote in trip["votes"])
    return {"decision": "sea" if seaside > 1 else "hills"}


builder = StateGraph(Trip)
builder.add_node("vote", vote)
builder.add_node("ask_driver", ask_driver)
builder.add_node("decide", decide, defer=True)
builder.add_conditional_edges(START, ask_each, ["vote"])
builder.add_edge(START, "ask_driver")
builder.add_edge("vote", "decide")
builder.add_edge("ask_driver", "decide")
builder.add_edge("decide", END)
graph = builder.compile(checkpointer=InMemorySaver())


def begin(thread: str) -> tuple[Any, dict[str, str]]:
    config: Any = {"configurable": {"thread_id": thread}}
    state = graph.invoke({"travellers": ["Ann", "Bob", "Cid"]}, config)
    asked = {question.value: question.id for question in state["__interrupt__"]}
    out.append([thread, sorted(asked), len(set(asked.values()))])
    return config, asked


def show(config: Any) -> None:
    snapshot = graph.get_state(config)
    out.append([sorted(snapshot.values.get("votes", [])), sorted(snapshot.next)])
    out.append(sorted([task.name, task.result is not None] for task in snapshot.tasks))


ANSWERS = {"Ann": "sea", "Bob": "hills", "Cid": "sea", "driver": "ten miles"}

config, asked = begin("all at once")
out.append(graph.invoke(Command(resume={asked[q]: ANSWERS[q.split(",")[0]] for q in asked}), config))
show(config)

config, asked = begin("one by one")
for question in sorted(asked):
    state = graph.invoke(Command(resume={asked[question]: ANSWERS[question.split(",")[0]]}), config)
    out.append([sorted(q.value for q in state.get("__interrupt__", [])), state.get("decision")])
    show(config)

config, asked = begin("in two parts")
first, *rest = sorted(asked)
graph.invoke(Command(resume={asked[first]: "hills", asked[rest[0]]: "hills"}), config)
show(config)
out.append(graph.invoke(Command(resume={asked[q]: "hills" for q in rest[1:]}), config))
