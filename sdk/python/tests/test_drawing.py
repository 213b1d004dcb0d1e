"""Graphs are drawn as LangGraph draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphd import graph, types

from .drawing_cases import State, drawings, step

EXPECTED: dict[str, str] = json.loads(Path(__file__).with_name("drawn.json").read_text())


class Library:
    StateGraph, START, END = graph.StateGraph, graph.START, graph.END
    Command, Send = types.Command, types.Send


DRAWN = drawings(Library)


def test_all_are_compared() -> None:
    assert DRAWN.keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_text_is_the_same(name: str) -> None:
    assert DRAWN[name] == EXPECTED[name]


def test_styles_are_as_wanted() -> None:
    drawing = graph.StateGraph(State).add_node("one", step).add_edge(graph.START, "one").compile().get_graph()
    text = drawing.draw_mermaid(
        curve_style="basis", node_colors={"first": "fill:red"}, frontmatter_config={"config": {"theme": "neutral"}}
    )
    assert "curve: basis\n  theme: neutral\n" in text
    assert "classDef first fill:red" in text
