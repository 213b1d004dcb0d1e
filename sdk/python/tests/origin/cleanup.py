"""Old threads are deleted, and of the others all but the last checkpoints."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []
saver = InMemorySaver()


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def ask(state: State) -> State:
    return {"log": [interrupt("keep it?")]}


builder = StateGraph(State)
builder.add_node("work", lambda state: {"log": ["worked"]})
builder.add_node("ask", ask)
builder.add_edge(START, "work")
builder.add_edge("work", "ask")
builder.add_edge("ask", END)
graph = builder.compile(checkpointer=saver)


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def describe(thread: str) -> None:
    snapshot = graph.get_state(config_of(thread))
    length = len(list(graph.get_state_history(config_of(thread))))
    out.append([thread, snapshot.values, list(snapshot.next), [q.value for q in snapshot.interrupts], length])


begun = {}
for thread in ("old", "waits", "ended"):
    graph.invoke({"log": []}, config_of(thread))
    begun[thread] = graph.get_state(config_of(thread)).created_at
    if thread != "waits":
        graph.invoke(Command(resume="yes"), config_of(thread))
    describe(thread)

out.append(begun["old"] < begun["waits"] < begun["ended"])
for thread in [name for name, when in begun.items() if when < begun["waits"]]:
    saver.delete_thread(thread)
try:
    saver.prune([name for name, when in begun.items() if when >= begun["waits"]], strategy="keep_latest")
except NotImplementedError:  # savers may leave it out
    out.append("not pruned")
for thread in ("old", "waits", "ended"):
    describe(thread)
graph.invoke(Command(resume="yes"), config_of("waits"))
describe("waits")
