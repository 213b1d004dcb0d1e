"""Commands: a node changes the state and says at once where to go."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

out: list[Any] = []


class Maze(TypedDict, total=False):
    keys: Annotated[list[str], operator.add]
    path: Annotated[list[str], operator.add]
    door: str


def hall(state: Maze) -> Command[Literal["cellar", "tower", "__end__"]]:
    if "gold" in state["keys"]:
        return Command(update={"path": ["hall: out"], "door": "open"}, goto=END)
    return Command(update={"path": ["hall"]}, goto="tower" if "iron" in state["keys"] else "cellar")


def cellar(state: Maze) -> Command[Literal["hall"]]:
    return Command(update={"keys": ["iron"], "path": ["cellar"]}, goto="hall")


def tower(state: Maze) -> Command[Literal["hall", "guard"]]:
    if state.get("door") == "guarded":
        return Command(update={"path": ["tower: up to the guard"]}, goto="guard")
    return Command(update={"keys": ["gold"], "path": ["tower"]}, goto="hall")


def guard(state: Maze) -> Command[Literal["hall"]]:
    word = interrupt("what is the word?")
    keys = ["gold"] if word == "friend" else []
    return Command(update=[("path", [f"guard heard {word}"]), ("keys", keys), ("door", "free")], goto="hall")


builder = StateGraph(Maze)
for node in (hall, cellar, tower, guard):
    builder.add_node(node)
builder.add_edge(START, "hall")
graph = builder.compile(checkpointer=InMemorySaver())


def run(thread: str, given: Any) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    for chunk in graph.stream(given, config, stream_mode="updates"):
        out.append({k: [q.value for q in v] if k == "__interrupt__" else v for k, v in chunk.items()})
    snapshot = graph.get_state(config)
    out.append([thread, snapshot.values, list(snapshot.next)])


run("free", {"keys": [], "path": []})
run("guarded", {"keys": [], "path": [], "door": "guarded"})
run("guarded", Command(resume="friend"))
run("wrong", {"keys": ["iron"], "path": [], "door": "guarded"})
run("wrong", Command(resume="foe"))
# A command may be what a thread goes on with.
run("free", Command(update={"door": "guarded"}, goto="tower"))
run("free", Command(resume="friend"))


# Several ends at once, and an edge beside the command.
def spread(state: Maze) -> Command[Literal["left", "right"]]:
    return Command(goto=["left", Send("right", {"door": "sent"})], update={"path": ["spread"]})


builder = StateGraph(Maze)
builder.add_node(spread)
builder.add_node("left", lambda state: {"path": [f"left {state.get('door')}"]})
builder.add_node("right", lambda state: {"path": [f"right {state.get('door')}"]})
builder.add_node("beside", lambda state: {"path": ["beside"]})
builder.add_edge(START, "spread")
builder.add_edge("spread", "beside")
out.append(sorted(builder.compile().invoke({"path": [], "door": "shut"})["path"]))
