"""Updates and forks: people write into a thread as nodes would, and try two ends of one story."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import StateUpdate

out: list[Any] = []


class Story(TypedDict, total=False):
    hero: str
    mood: str
    lines: Annotated[list[str], operator.add]


def begin(state: Story) -> Story:
    return {"lines": [f"{state['hero']} wakes"], "mood": "sleepy"}


def meet(state: Story) -> Story:
    return {"lines": [f"{state['hero']}, {state['mood']}, meets a bear"]}


def choose(state: Story) -> str:
    return "fight" if state["mood"] == "angry" else "dance"


builder = StateGraph(Story)
builder.add_node(begin)
builder.add_node(meet)
builder.add_node("fight", lambda state: {"lines": ["they fight"], "mood": "tired"})
builder.add_node("dance", lambda state: {"lines": ["they dance"], "mood": "merry"})
builder.add_edge(START, "begin")
builder.add_edge("begin", "meet")
builder.add_conditional_edges("meet", choose, ["fight", "dance"])
builder.add_edge("fight", END)
builder.add_edge("dance", END)
graph = builder.compile(checkpointer=InMemorySaver())


def show(snapshot: Any) -> list[Any]:
    return [snapshot.metadata["source"], snapshot.metadata["step"], list(snapshot.next), snapshot.values]


config: Any = {"configurable": {"thread_id": "bear"}}
out.append(graph.invoke({"hero": "Ivo", "lines": []}, config))
before = next(s for s in graph.get_state_history(config) if s.next == ("meet",))
for mood in ("angry", "shy"):
    fork = graph.update_state(before.config, {"mood": mood, "lines": [f"a {mood} dream"]})
    out.append(show(graph.get_state(fork)))
    out.append(graph.invoke(None, fork))
out.append([show(s)[:3] for s in graph.get_state_history(config)])

# In the name of a node: the edges after it decide.
written = graph.update_state(config, {"mood": "angry"}, as_node="meet")
out.append(show(graph.get_state(written)))
out.append(graph.invoke(None, config)["lines"][-2:])
graph.update_state(config, None, as_node=END)
out.append(show(graph.get_state(config))[:3])

# Several steps at once, on a thread that has not begun.
fresh: Any = {"configurable": {"thread_id": "fresh"}}
steps = [
    [StateUpdate({"hero": "Una", "lines": ["once"]}, "__input__")],
    [StateUpdate({"lines": ["upon"]}, "begin")],
    [StateUpdate({"lines": ["a time"], "mood": "calm"}, "meet")],
]
graph.bulk_update_state(fresh, steps)
out.append([show(s) for s in graph.get_state_history(fresh)])
out.append(graph.invoke(None, fresh))
try:
    graph.update_state(fresh, {"lines": ["x"]}, as_node="ghost")
except InvalidUpdateError as error:
    out.append(str(error).splitlines()[0])
