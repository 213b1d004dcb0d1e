"""Durable execution: after a failure a run goes on where it was, and what was done is not done again."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

out: list[Any] = []
done: list[str] = []
broken: set[str] = set()


class Shipment(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def make(name: str) -> Any:
    def work(state: Shipment) -> Shipment:
        done.append(name)
        if name in broken:
            raise RuntimeError(f"{name} is broken")
        return {"log": [name]}

    return work


builder = StateGraph(Shipment)
for name in ("fetch", "weigh", "packer", "label", "send"):
    builder.add_node(name, make(name))
builder.add_edge(START, "fetch")
builder.add_edge(START, "weigh")
builder.add_edge(["fetch", "weigh"], "packer")
builder.add_edge("packer", "label")
builder.add_edge("label", "send")
builder.add_edge("send", END)
graph = builder.compile(checkpointer=InMemorySaver())


def run(config: Any, given: Any, **options: Any) -> None:
    try:
        out.append(graph.invoke(given, config, **options))
    except RuntimeError as error:
        out.append([type(error).__name__, str(error)])
    snapshot = graph.get_state(config)
    failed = sorted(task.name for task in snapshot.tasks if f"{task.name} is broken" in str(task.error))
    out.append([snapshot.values, sorted(snapshot.next), failed])
    out.append(sorted(done))
    done.clear()


for durability in ("sync", "async", "exit"):
    broken.update({"packer", "label"})
    config: Any = {"configurable": {"thread_id": durability}}
    run(config, {"log": []}, durability=durability)
    run(config, None, durability=durability)
    broken.discard("packer")
    run(config, None, durability=durability)
    broken.discard("label")
    run(config, None, durability=durability)
    out.append(len(list(graph.get_state_history(config))) > 2)
