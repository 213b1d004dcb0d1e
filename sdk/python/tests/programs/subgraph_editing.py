"""State inside of subgraphs: it is read, edited and forked while the subgraph waits."""

import operator
import warnings
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Weather(TypedDict, total=False):
    city: str
    forecast: str
    log: Annotated[list[str], operator.add]


class Trip(TypedDict, total=False):
    city: str
    forecast: str
    packed: str


def find_station(state: Weather) -> Weather:
    return {"log": [f"station of {state['city']}"]}


def ask_station(state: Weather) -> Weather:
    answer = interrupt({"city": state["city"], "seen": len(state["log"])})
    return {"forecast": f"{answer} in {state['city']}", "log": ["asked"]}


weather = StateGraph(Weather)
weather.add_sequence([find_station, ask_station])
weather.add_edge(START, "find_station")
weather.add_edge("ask_station", END)

builder = StateGraph(Trip)
builder.add_node("clean", lambda state: {"city": state["city"].title()})
builder.add_node("weather", weather.compile())
builder.add_node("pack", lambda state: {"packed": f"for {state['forecast']}"})
builder.add_edge(START, "clean")
builder.add_edge("clean", "weather")
builder.add_edge("weather", "pack")
builder.add_edge("pack", END)
graph = builder.compile(checkpointer=InMemorySaver())


def begin(thread: str) -> tuple[Any, Any]:
    config: Any = {"configurable": {"thread_id": thread}}
    state = graph.invoke({"city": "nice"}, config)
    inner = graph.get_state(config, subgraphs=True).tasks[0].state
    out.append([[q.value for q in state["__interrupt__"]], inner.values, list(inner.next)])
    return config, inner


config, inner = begin("answered")
out.append(graph.get_state(inner.config).values)
out.append([[list(s.next), s.values] for s in graph.get_state_history(inner.config)])
out.append(graph.invoke(Command(resume="sun"), config))

# The work of the node that asks is done by hand; graphd warns that its question is dropped.
warnings.simplefilter("ignore")
config, inner = begin("by hand")
graph.update_state(inner.config, {"forecast": "hail by hand", "log": ["by hand"]}, as_node="ask_station")
inner = graph.get_state(config, subgraphs=True).tasks[0].state
out.append([inner.values, list(inner.next)])
out.append(graph.invoke(None, config))

# From a checkpoint of the subgraph before the question.
config, inner = begin("again")
graph.invoke(Command(resume="fog"), config)
before = next(s for s in graph.get_state_history(config) if s.next == ("weather",))
state = graph.invoke(None, before.config)
out.append([q.value for q in state["__interrupt__"]])
out.append(graph.invoke(Command(resume="snow"), config))
out.append([[name, type(child).__name__] for name, child in graph.get_subgraphs()])
