"""Visualisation: graphs are drawn as Mermaid, with their conditions and what is inside of them."""

from typing import Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

out: list[Any] = []


class Soup(TypedDict, total=False):
    salt: int
    ready: bool


def taste(state: Soup) -> Literal["add_salt", "serve"]:
    return "serve" if state.get("ready") else "add_salt"


def garnish(state: Soup) -> Command[Literal["serve", "add_salt"]]:
    return Command(goto="serve")


cold = StateGraph(Soup)
cold.add_node("cut", lambda state: {})
cold.add_node("mix", lambda state: {})
cold.add_edge(START, "cut")
cold.add_edge("cut", "mix")
cold.add_edge("mix", END)

builder = StateGraph(Soup)
builder.add_node("cook", lambda state: {}, metadata={"hot": True})
builder.add_node("add_salt", lambda state: {"salt": 1})
builder.add_node("gazpacho", cold.compile())
builder.add_node(garnish)
builder.add_node("serve", lambda state: {"ready": True})
builder.add_edge(START, "cook")
builder.add_edge(START, "gazpacho")
builder.add_conditional_edges("cook", taste)
builder.add_edge("add_salt", "cook")
builder.add_edge("gazpacho", "garnish")
builder.add_conditional_edges("serve", lambda state: "done", {"done": END, "once more": "cook"})
graph = builder.compile(interrupt_before=["serve"])

for compiled in (cold.compile(), graph, cold.compile(name="small")):
    drawing = compiled.get_graph()
    out.append(sorted(drawing.nodes))
    out.append(sorted([str(part) for part in edge] for edge in drawing.edges))
    out.append(drawing.draw_mermaid().splitlines())
for depth in (1, True):
    drawing = graph.get_graph(xray=depth)
    out.append(sorted(drawing.nodes))
    out.append(drawing.draw_mermaid(with_styles=False).splitlines())
out.append(graph.get_graph().to_json()["edges"])
