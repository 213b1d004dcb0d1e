"""Navigation: a node inside of a subgraph leaves it for a node of the parent."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Visit(TypedDict, total=False):
    complaint: str
    log: Annotated[list[str], operator.add]


def examine(visit: Visit) -> Command[Literal["rest", "surgery", "pharmacy"]]:
    found = ["examined"]
    if "broken" in visit["complaint"]:
        return Command(graph=Command.PARENT, goto="surgery", update={"log": [*found, "sent to surgery"]})
    if "cough" in visit["complaint"]:
        return Command(graph=Command.PARENT, goto="pharmacy", update={"log": [*found, "sent to the pharmacy"]})
    return Command(goto="rest", update={"log": found})


practice = StateGraph(Visit)
practice.add_node(examine, destinations=("rest",))
practice.add_node("rest", lambda visit: {"log": ["rested"]})
practice.add_edge(START, "examine")
practice.add_edge("rest", END)


def operate(visit: Visit) -> Command[Any]:
    consent = interrupt(f"operate after {len(visit['log'])} steps?")
    if consent == "no":
        return Command(graph=Command.PARENT, goto="pharmacy", update={"log": ["refused"]})
    return Command(update={"log": [f"operated: {consent}"]})


theatre = StateGraph(Visit)
theatre.add_node(operate)
theatre.add_edge(START, "operate")

builder = StateGraph(Visit)
builder.add_node("practice", practice.compile(), destinations=("surgery", "pharmacy", "bill"))
builder.add_node("surgery", theatre.compile(), destinations=("pharmacy", "bill"))
builder.add_node("pharmacy", lambda visit: {"log": ["got a syrup"]})
builder.add_node("bill", lambda visit: {"log": [f"a bill for {len(visit['log'])} things"]})
builder.add_edge(START, "practice")
builder.add_edge("pharmacy", END)
graph = builder.compile(checkpointer=InMemorySaver())

for complaint, answers in (
    ("tired", []),
    ("a cough", []),
    ("a broken leg", ["yes"]),
    ("a broken arm", ["no"]),
):
    config: Any = {"configurable": {"thread_id": complaint}}
    for given in [{"complaint": complaint, "log": []}, *(Command(resume=answer) for answer in answers)]:
        state = graph.invoke(given, config)
        out.append([[q.value for q in state.pop("__interrupt__", [])], state, list(graph.get_state(config).next)])
    steps = [[s.metadata["step"], list(s.next), len(s.values.get("log", []))] for s in graph.get_state_history(config)]
    out.append(steps)
