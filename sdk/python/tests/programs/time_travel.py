"""Time travel: a walk is replayed from one of its checkpoints, and forked from an edited one."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

out: list[Any] = []
calls: list[str] = []


class Walk(TypedDict, total=False):
    place: str
    path: Annotated[list[str], operator.add]
    souvenir: str


def make(place: str, souvenir: str) -> Any:
    def visit(state: Walk) -> Walk:
        calls.append(place)
        return {"place": place, "path": [f"{state['place']} to {place}"], "souvenir": souvenir}

    return visit


builder = StateGraph(Walk)
builder.add_sequence([("mill", make("mill", "flour")), ("lake", make("lake", "stone")), ("inn", make("inn", "beer"))])
builder.add_edge(START, "mill")
builder.add_edge("inn", END)
graph = builder.compile(checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "walk"}}


def tell(label: str, state: Any) -> None:
    out.append([label, state, list(calls)])
    calls.clear()


def describe(snapshot: Any) -> list[Any]:
    metadata = snapshot.metadata
    return [metadata["step"], metadata["source"], list(snapshot.next), snapshot.values.get("place")]


tell("first", graph.invoke({"place": "home", "path": []}, config))
history = list(graph.get_state_history(config))
out.append([describe(snapshot) for snapshot in history])
by_id = {snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in history}
for snapshot in history[:-1]:  # each checkpoint has the one before it as its parent
    out.append(describe(by_id[snapshot.parent_config["configurable"]["checkpoint_id"]]))

before_inn = next(snapshot for snapshot in history if snapshot.next == ("inn",))
tell("replayed", graph.invoke(None, before_inn.config))
out.append([describe(snapshot) for snapshot in graph.get_state_history(config)])

before_lake = next(snapshot for snapshot in history if snapshot.next == ("lake",))
fork = graph.update_state(before_lake.config, {"place": "forest", "path": ["lost the way"]})
out.append(describe(graph.get_state(fork)))
tell("forked", graph.invoke(None, fork))

out.append(describe(graph.get_state(config)))
out.append(graph.get_state(before_inn.config).values)
steps = graph.get_state_history(config, filter={"source": "fork"})
out.append([describe(snapshot) for snapshot in steps] or "no checkpoint has this source")
out.append([describe(s) for s in graph.get_state_history(config, filter={"source": "update"})])
out.append([describe(s) for s in graph.get_state_history(config, limit=2)])
out.append([describe(s) for s in graph.get_state_history(config, before=before_inn.config)])
