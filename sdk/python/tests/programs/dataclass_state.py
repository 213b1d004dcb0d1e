"""Dataclass state: nodes read attributes, defaults count, and fields have reducers."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


@dataclass
class Ticket:
    title: str
    urgency: int = 1
    notes: Annotated[list[str], operator.add] = field(default_factory=list)
    owner: str | None = None


@dataclass
class Summary:
    title: str
    owner: str | None


def read(ticket: Ticket) -> dict[str, Any]:
    urgent = "fire" in ticket.title
    return {"urgency": 9 if urgent else ticket.urgency, "notes": [f"read with {len(ticket.notes)} notes"]}


def assign(ticket: Ticket) -> Command[Literal["close", "__end__"]]:
    if ticket.urgency < 5:
        return Command(update={"owner": "night shift"}, goto=END)
    owner = interrupt(f"who takes {ticket.title}?")
    return Command(update={"owner": owner, "notes": [f"given to {owner}"]}, goto="close")


def close(ticket: Ticket) -> Ticket:
    return Ticket(title=f"{ticket.title} (closed)", urgency=0, notes=["closed"], owner=ticket.owner)


builder = StateGraph(Ticket, output_schema=Summary)
builder.add_node(read)
builder.add_node(assign)
builder.add_node(close)
builder.add_edge(START, "read")
builder.add_edge("read", "assign")
builder.add_edge("close", END)
graph = builder.compile(checkpointer=InMemorySaver())


def run(thread: str, given: Any) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    state = graph.invoke(given, config)
    asked = [question.value for question in state.pop("__interrupt__", [])]
    out.append([state, asked, graph.get_state(config).values])


run("lamp", {"title": "a lamp"})
run("door", Ticket("a door", urgency=3, notes=["it squeaks"]))
run("fire", Ticket("a fire"))
run("fire", Command(resume="Zoe"))
run("bell", {"title": "a bell", "urgency": 7, "notes": ["rings", "at night"]})
run("bell", Command(resume="Yan", update={"notes": ["and by day"]}))
for chunk in graph.stream({"title": "a cup"}, {"configurable": {"thread_id": "cup"}}):
    out.append(chunk)
try:
    graph.invoke({"urgency": 2}, {"configurable": {"thread_id": "untitled"}})
except TypeError as error:
    out.append("title" in str(error))
