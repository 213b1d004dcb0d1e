"""The name that LangGraph's programs have for any graph that runs."""

from __future__ import annotations

from typing import Any

import pytest

from graphd.func import entrypoint
from graphd.graph import START, MessagesState, StateGraph
from graphd.graph.state import CompiledStateGraph
from graphd.pregel import Pregel


def say(state: MessagesState) -> dict[str, Any]:
    return {"messages": []}


@entrypoint()
def double(number: int) -> int:
    return 2 * number


def test_every_graph_that_runs_is_a_pregel() -> None:
    graph = StateGraph(MessagesState).add_node(say).add_edge(START, "say").compile()
    bound = graph.with_config({"tags": ["a"]})
    assert all(isinstance(one, Pregel) for one in (graph, bound, graph.copy(), double))
    assert issubclass(CompiledStateGraph, Pregel)
    assert not isinstance(graph.builder, Pregel)


@pytest.mark.parametrize("options", [{}, {"nodes": {}, "channels": {}, "input_channels": "a", "output_channels": "b"}])
def test_a_pregel_is_not_made_of_nodes_and_channels(options: dict[str, Any]) -> None:
    with pytest.raises(
        TypeError, match=r"Instead: graphd\.graph\.StateGraph\(…\)\.compile\(\), or graphd\.func\.entrypoint"
    ):
        Pregel(**options)


@pytest.mark.parametrize(
    ("name", "instead"), [("NodeBuilder", "StateGraph, whose add_node"), ("ChannelWriteEntry", "return {key: value}")]
)
def test_what_programs_the_loop_has_a_replacement(name: str, instead: str) -> None:
    with pytest.raises(ImportError, match=rf"graphd has no pregel\.{name}: .* Instead: .*{instead}"):
        exec(f"from graphd.pregel import {name}")
