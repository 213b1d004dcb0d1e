"""Persistence of subgraphs: most forget when their call ends, and one with a saver of its own remembers."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Desk(TypedDict, total=False):
    letters: Annotated[list[str], operator.add]
    reply: str


class Clerk(TypedDict, total=False):
    letter: str
    seen: Annotated[list[str], operator.add]


def read(state: Clerk) -> Clerk:
    return {"seen": [state["letter"]]}


def sign(state: Clerk) -> Clerk:
    if "urgent" not in state["letter"]:
        return {}
    return {"seen": [f"signed by {interrupt({'sign': state['letter'], 'seen': len(state['seen'])})}"]}


def build(checkpointer: Any) -> Any:
    clerk = StateGraph(Clerk)
    clerk.add_sequence([read, sign])
    clerk.add_edge(START, "read")
    clerk_graph = clerk.compile(checkpointer=checkpointer)

    def hand_over(state: Desk) -> Desk:
        result = clerk_graph.invoke({"letter": state["letters"][-1]})
        return {"reply": f"the clerk remembers {', '.join(result['seen'])}"}

    desk = StateGraph(Desk)
    desk.add_node(hand_over)
    desk.add_edge(START, "hand_over")
    return desk.compile(checkpointer=InMemorySaver())


for label, checkpointer in (("forgets", None), ("remembers", True), ("keeps nothing", False)):
    graph = build(checkpointer)
    letters = ["a bill", "a card"] if checkpointer is False else ["a bill", "an urgent note", "a card"]
    for thread in ("Monday", "Tuesday"):
        config: Any = {"configurable": {"thread_id": f"{label} {thread}"}}
        for letter in letters:
            state = graph.invoke({"letters": [letter]}, config)
            if "__interrupt__" in state:
                out.append([label, [q.value for q in state["__interrupt__"]]])
                inner = graph.get_state(config, subgraphs=True).tasks[0].state
                out.append([inner.values, list(inner.next)])
                state = graph.invoke(Command(resume=f"the boss on {thread}"), config)
            out.append([label, thread, state["reply"]])
        out.append(graph.get_state(config).values)
