"""What nodes print and what the reader of their stream sees, in one list."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def make(name: str) -> Any:
    def node(state: State) -> State:
        out.append(f"{name} runs")
        said = interrupt("go on?") if name == "ask" else name
        get_stream_writer()(f"from {name}")
        return {"log": [said]}

    return node


builder = StateGraph(State)
names = ["read", "ask", "book", "tell"]
for name in names:
    builder.add_node(name, make(name))
for start, end in zip([START, *names], [*names, END], strict=True):
    builder.add_edge(start, end)
graph = builder.compile(checkpointer=InMemorySaver())


def follow(given: Any, thread: str, mode: Any) -> None:
    for chunk in graph.stream(given, {"configurable": {"thread_id": thread}}, stream_mode=mode):
        shown = chunk[1] if isinstance(mode, list) else chunk
        if isinstance(shown, dict) and "__interrupt__" in shown:
            shown = [q.value for q in shown["__interrupt__"]]
        out.append({"reader": shown})


for mode in ("updates", "values", "custom", ["custom", "updates"]):
    thread = f"whole-{mode if isinstance(mode, str) else len(mode)}"
    follow({"log": []}, thread, mode)
    follow(Command(resume="yes"), thread, mode)

# A reader that leaves the loop.
config: Any = {"configurable": {"thread_id": "left"}}
for chunk in graph.stream({"log": []}, config, stream_mode="updates"):
    out.append({"reader leaves": chunk})
    break
snapshot = graph.get_state(config)
out.append([snapshot.values, list(snapshot.next)])
follow(None, "left", "updates")

# Two streams, read in turns.
both = [graph.stream({"log": []}, {"configurable": {"thread_id": f"turn-{n}"}}) for n in range(2)]
for one, other in zip(*both, strict=True):
    out.append([list(one), list(other)])
