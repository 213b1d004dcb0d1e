"""Subgraphs that share the state of their parent: they are nodes of it."""

from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


def add_new(left: list[str], right: list[str]) -> list[str]:
    """A subgraph hands back its whole log, with what it was given."""
    return left + [line for line in right if line not in left]


class House(TypedDict, total=False):
    budget: int
    log: Annotated[list[str], add_new]


class Kitchen(House, total=False):
    """Only the kitchen knows its tiles."""

    tiles: str


def choose_tiles(state: Kitchen) -> Kitchen:
    return {"tiles": "blue" if state["budget"] > 50 else "white", "log": ["tiles chosen"]}


def lay_tiles(state: Kitchen) -> Kitchen:
    return {"log": [f"{state['tiles']} tiles laid"], "budget": state["budget"] - 40}


def ask_owner(state: House) -> House:
    return {"log": [f"the owner says {interrupt({'left': state['budget']})}"]}


kitchen = StateGraph(Kitchen)
kitchen.add_sequence([choose_tiles, lay_tiles])
kitchen.add_edge(START, "choose_tiles")

inspection = StateGraph(House)
inspection.add_node(ask_owner)
inspection.add_edge(START, "ask_owner")

works = StateGraph(House)
works.add_node("kitchen", kitchen.compile())
works.add_node("inspection", inspection.compile())
works.add_edge(START, "kitchen")
works.add_edge("kitchen", "inspection")

builder = StateGraph(House)
builder.add_node("plan", lambda state: {"log": ["planned"]})
builder.add_node("works", works.compile())
builder.add_node("pay", lambda state: {"log": [f"paid, {state['budget']} left"]})
builder.add_edge(START, "plan")
builder.add_edge("plan", "works")
builder.add_edge("works", "pay")
builder.add_edge("pay", END)
graph = builder.compile(checkpointer=InMemorySaver())


def show(snapshot: Any) -> Any:
    """The state of each graph that is at work, from the outermost."""
    if snapshot is None or not hasattr(snapshot, "values"):
        return None
    return [snapshot.values, list(snapshot.next), [show(task.state) for task in snapshot.tasks]]


for thread, budget in (("villa", 100), ("hut", 45)):
    config: Any = {"configurable": {"thread_id": thread}}
    state = graph.invoke({"budget": budget, "log": []}, config)
    out.append([[q.value for q in state.pop("__interrupt__")], state])
    out.append(show(graph.get_state(config, subgraphs=True)))
    out.append(graph.invoke(Command(resume="fine"), config))
    out.append(show(graph.get_state(config, subgraphs=True)))
