"""Map-reduce: as many tasks as the state asks for, each with an input of its own, and one that joins them."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send

out: list[Any] = []


class Survey(TypedDict, total=False):
    villages: dict[str, list[int]]
    averages: Annotated[list[tuple[str, float]], operator.add]
    report: str


class Village(TypedDict):
    name: str
    ages: list[int]


def visit(state: Survey) -> list[Send]:
    return [Send("ask", {"name": name, "ages": ages}) for name, ages in state["villages"].items()]


def ask(village: Village) -> dict[str, Any]:
    return {"averages": [(village["name"], sum(village["ages"]) / len(village["ages"]))]}


def report(state: Survey) -> Survey:
    oldest = max(state["averages"], key=lambda average: average[1])
    return {"report": f"{oldest[0]} of {len(state['averages'])} is the oldest"}


def build(**options: Any) -> Any:
    builder = StateGraph(Survey)
    builder.add_node("ask", ask)
    builder.add_node("report", report)
    builder.add_conditional_edges(START, visit, ["ask"])
    builder.add_edge("ask", "report")
    builder.add_edge("report", END)
    return builder.compile(**options)


graph = build(checkpointer=InMemorySaver())
villages = {"Hof": [30, 50], "Au": [70], "Ried": [20, 20, 50]}
config: Any = {"configurable": {"thread_id": "survey"}}
out.append(graph.invoke({"villages": villages}, config))
for snapshot in graph.get_state_history(config):
    out.append([list(snapshot.next), [task.name for task in snapshot.tasks], len(snapshot.values.get("averages", []))])
out.append(sorted(graph.stream({"villages": {"Au": [1], "Hof": [2]}}, {"configurable": {"thread_id": "2"}}), key=str))

# A node may send as well, and sends may lead to further sends.


class Countdown(TypedDict):
    log: Annotated[list[str], operator.add]


def begin(state: Countdown) -> Command[Any]:
    return Command(update={"log": ["begin"]}, goto=[Send("count", 3), Send("count", 1)])


def count(left: int) -> Command[Any]:
    further = [Send("count", left - 1)] if left > 1 else ["end"]
    return Command(update={"log": [f"{left} left"]}, goto=further)


builder = StateGraph(Countdown)
builder.add_node("begin", begin, destinations=("count",))
builder.add_node("count", count, destinations=("count", "end"))
builder.add_node("end", lambda state: {"log": [f"end after {len(state['log'])}"]})
builder.add_edge(START, "begin")
out.append(builder.compile().invoke({"log": []})["log"])
