"""Nodes of graphs that the server has."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from graphd import START, Client, Command, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.errors import InvalidGraphError

FILE = """
graph: orders-of-parts
channels: { order: {}, log: { reducer: append } }
input: [order]
nodes:
  price: { remote: {} }
  approve: { ask: { value: state.order, update: { log: ["'approved'"] } } }
  ship: { remote: {} }
edges: [START -> price, approve -> ship, ship -> END]
conditional_edges: [{ from: price, router: choose, in_worker: true, then: [approve, ship] }]
"""


class State(TypedDict):
    order: str
    log: Annotated[list[str], operator.add]


def price(state: State) -> dict[str, Any]:
    return {"log": [f"price of {state['order']}"]}


def choose(state: State) -> str:
    return "approve" if state["order"] == "book" else "ship"


def ship(state: State) -> dict[str, Any]:
    return {"log": [f"shipped after {len(state['log'])} {interrupt('sure?')}"]}


def test_two_programs_serve_the_nodes_of_one_graph(server: DevServer, client: Client) -> None:
    client.graphs.put(FILE)
    builder = StateGraph(State).add_node("price", price).add_conditional_edges("price", choose)
    pricing = builder.compile(part_of="orders-of-parts", server=server.address)
    shipping = StateGraph(State).add_node("ship", ship).compile(part_of="orders-of-parts", server=server.address)
    thread = {"configurable": {"thread_id": "part of a graph"}}
    asked = pricing.invoke({"order": "book"}, thread)
    assert asked["log"] == ["price of book"]
    assert [one.value for one in asked["__interrupt__"]] == ["book"]
    shipping.invoke(Command(resume="yes"), thread)
    done = pricing.invoke(Command(resume="yes"), thread)
    assert done["log"] == ["price of book", "approved", "shipped after 2 yes"]
    pricing.detach()
    shipping.detach()


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"name": "x"}, "name is for the server's graph"),
        ({"interrupt_before": ["price"]}, "interrupt_before is for the server's graph"),
        ({"drift": "accept"}, "drift is for the server's graph"),
        ({"part_of": ""}, "part_of is empty"),
    ],
)
def test_what_a_whole_graph_has_is_refused(more: dict[str, Any], problem: str) -> None:
    options: dict[str, Any] = {"part_of": "orders-of-parts"} | more
    with pytest.raises(InvalidGraphError, match=problem):
        StateGraph(State).add_node("price", price).compile(**options)


def add_edge(builder: Any) -> None:
    builder.add_node("price", price).add_edge(START, "price")


def add_graph(builder: Any) -> None:
    builder.add_node("price", StateGraph(State).add_node("n", price).add_edge(START, "n").compile())


def add_handler(builder: Any) -> None:
    builder.add_node("price", price, error_handler=price)


def add_condition(builder: Any) -> None:
    builder.add_node("price", price).add_conditional_edges("other", lambda _: "price")


@pytest.mark.parametrize(
    ("add", "problem"),
    [
        (lambda _: None, "want a node to serve"),
        (add_edge, "leave out add_edge"),
        (add_graph, "the graph in node 'price'"),
        (add_handler, "the error handler of 'price'"),
        (add_condition, "after the unknown node 'other'"),
    ],
)
def test_what_the_graph_declares_is_refused(add: Callable[[Any], None], problem: str) -> None:
    builder = StateGraph(State)
    add(builder)
    with pytest.raises(InvalidGraphError, match=problem):
        builder.compile(part_of="orders-of-parts")
