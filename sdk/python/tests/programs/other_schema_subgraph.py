"""Subgraphs with a schema of their own: a node calls them, and translates what goes in and comes out."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Formula(TypedDict, total=False):
    """The chemist's."""

    drops: int
    warnings: Annotated[list[str], operator.add]


class Perfume(TypedDict, total=False):
    """The perfumer's."""

    scent: str
    formula: str
    notes: Annotated[list[str], operator.add]


class Order(TypedDict, total=False):
    """The shop's."""

    customer: str
    wish: str
    bottle: str


def measure(formula: Formula) -> Formula:
    return {"drops": formula["drops"] * 2, "warnings": ["doubled"]}


def check(formula: Formula) -> Formula:
    return {"warnings": [interrupt({"drops": formula["drops"]})] if formula["drops"] > 10 else []}


chemist = StateGraph(Formula)
chemist.add_sequence([measure, check])
chemist.add_edge(START, "measure")
chemist_graph = chemist.compile()


def compose(perfume: Perfume) -> Perfume:
    found = chemist_graph.invoke({"drops": len(perfume["scent"])})
    return {"formula": f"{found['drops']} drops of {perfume['scent']}", "notes": found["warnings"]}


perfumer = StateGraph(Perfume)
perfumer.add_node(compose)
perfumer.add_edge(START, "compose")
perfumer_graph = perfumer.compile()


def serve(order: Order) -> Order:
    perfume = perfumer_graph.invoke({"scent": order["wish"].lower(), "notes": []})
    return {"bottle": f"for {order['customer']}: {perfume['formula']} ({', '.join(perfume['notes'])})"}


shop = StateGraph(Order)
shop.add_node(serve)
shop.add_edge(START, "serve")
graph = shop.compile(checkpointer=InMemorySaver())

for customer, wish in (("Nell", "Rose"), ("Otto", "Sandalwood")):
    config: Any = {"configurable": {"thread_id": customer}}
    given: Any = {"customer": customer, "wish": wish}
    for namespace, chunk in graph.stream(given, config, subgraphs=True):
        shown = {k: [q.value for q in v] if k == "__interrupt__" else v for k, v in chunk.items()}
        out.append([[level.split(":")[0] for level in namespace], shown])
    if graph.get_state(config).next:
        out.append(graph.invoke(Command(resume="strong, but safe"), config))
    out.append(graph.get_state(config).values)
