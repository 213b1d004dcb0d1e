"""Stream modes: one brew, told as states, updates, tasks, checkpoints and their mixture."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Brew(TypedDict, total=False):
    degrees: int
    log: Annotated[list[str], operator.add]


def heat(state: Brew) -> Brew:
    return {"degrees": state["degrees"] + 50, "log": ["heated"]}


def taste(state: Brew) -> Brew:
    return {"log": [f"tastes {interrupt({'taste it at': state['degrees']})}"]}


def rest(state: Brew) -> None:
    """Changes nothing."""


builder = StateGraph(Brew)
builder.add_sequence([heat, taste, rest])
builder.add_edge(START, "heat")
builder.add_edge("rest", END)
graph = builder.compile(checkpointer=InMemorySaver())


def show(item: Any) -> Any:
    """An item without ids and times."""
    if isinstance(item, tuple):
        return [show(part) for part in item]
    if not isinstance(item, dict):
        return item
    if "__interrupt__" in item:
        return {**item, "__interrupt__": [q.value for q in item["__interrupt__"]]}
    if "payload" in item:
        return [item["type"], item["step"], show(item["payload"])]
    kept = {
        k: v for k, v in item.items() if k not in ("id", "config", "parent_config", "metadata", "tasks", "triggers")
    }
    if "interrupts" in item:
        kept["interrupts"] = [q["value"] if isinstance(q, dict) else q.value for q in item["interrupts"]]
    if "tasks" in item:
        kept["tasks"] = [[task["name"], "error" in task] for task in item["tasks"]]
        kept["step"] = item["metadata"]["step"]
    return kept


def tell(mode: Any, *inputs: Any, **options: Any) -> None:
    config: Any = {"configurable": {"thread_id": f"{mode} {options}"}}
    for given in inputs:
        out.append([mode, [show(item) for item in graph.stream(given, config, stream_mode=mode, **options)]])


begin = {"degrees": 20, "log": []}
for mode in ("values", "updates", ["updates", "values"]):
    tell(mode, begin, Command(resume="bitter"))
    tell(mode, begin, Command(resume="sweet"), output_keys=["log"])
    tell(mode, begin, output_keys="degrees")
for mode in ("tasks", "checkpoints", "debug", ["tasks", "updates"], ["debug", "values"]):
    tell(mode, begin)
    tell(mode, {"degrees": 10, "log": ["cold"]}, output_keys=["degrees"])
