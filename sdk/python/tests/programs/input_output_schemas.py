"""Schemas: a bakery takes orders, tells prices, and keeps its recipe between two nodes."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

out: list[Any] = []


class Order(TypedDict):
    cake: str
    guests: int


class Offer(TypedDict):
    price: int
    steps: list[str]


class Bakery(Order, Offer, total=False):
    steps: Annotated[list[str], operator.add]
    oven: str


class Recipe(TypedDict):
    """Only two nodes know it."""

    grams: dict[str, int]


def choose(order: Order) -> Recipe:
    out.append(["choose sees", sorted(order)])
    return {"grams": {"flour": 50 * order["guests"], "sugar": 20 * order["guests"]}}


def mix(recipe: Recipe) -> dict[str, Any]:
    out.append(["mix sees", sorted(recipe)])
    return {"oven": f"{sum(recipe['grams'].values())} g", "steps": [f"mixed {len(recipe['grams'])} things"]}


def calculate(state: Bakery) -> Offer:
    out.append(["calculate sees", sorted(state)])
    return {"price": state["guests"] * 3, "steps": [f"baked {state['cake']} of {state['oven']}"]}


builder = StateGraph(Bakery, input_schema=Order, output_schema=Offer)
builder.add_node("choose", choose)
builder.add_node("mix", mix)
builder.add_node("calculate", calculate)
builder.add_edge(START, "choose")
builder.add_edge("choose", "mix")
builder.add_edge("mix", "calculate")
builder.add_edge("calculate", END)
graph = builder.compile()

out.append(graph.invoke({"cake": "lemon", "guests": 8}))
out.append(graph.invoke({"cake": "plum", "guests": 2, "oven": "unknown to the input", "colour": "blue"}))
out.append(list(graph.stream({"cake": "nut", "guests": 1}, stream_mode="updates")))
out.append(list(graph.stream({"cake": "nut", "guests": 1}, stream_mode="values")))
out.append(graph.invoke({"cake": "nut", "guests": 1}, output_keys=["oven", "price"]))

# A node may be told its schema when it is added.
builder = StateGraph(Bakery, input_schema=Order, output_schema=Offer)
builder.add_node("count", lambda state: {"price": len(state), "steps": sorted(state)}, input_schema=Order)
builder.add_edge(START, "count")
out.append(builder.compile().invoke({"cake": "rye", "guests": 4}))
