"""Graphs are drawn as LangGraph draws them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graphd import graph, types
from graphd.errors import MissingPackageError

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


def compiled(library: str) -> Any:
    graphs = importlib.import_module(f"{library}.graph")
    builder = graphs.StateGraph(State).add_node("one", step).add_node("two", step)
    builder.add_edge(graphs.START, "one").add_conditional_edges("one", lambda state: "two", ["two", graphs.END])
    return builder.compile()


def test_characters_draw_the_same() -> None:
    pytest.importorskip("langgraph")
    pytest.importorskip("grandalf")
    drawn = compiled("graphd").get_graph().draw_ascii()
    assert drawn == compiled("langgraph").get_graph().draw_ascii()
    assert "| one |" in drawn


def test_characters_need_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ascii_drawing = pytest.importorskip("langchain_core.runnables.graph_ascii")
    drawing = compiled("graphd").get_graph()
    monkeypatch.setattr(ascii_drawing, "_HAS_GRANDALF", False)
    with pytest.raises(ImportError, match="grandalf"):
        drawing.draw_ascii()
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.graph", None)
    for draw in (drawing.draw_ascii, drawing.draw_png, drawing.draw_mermaid_png):
        with pytest.raises(MissingPackageError, match=r"draw_\w+\(\) needs langchain-core: pip install"):
            draw()


def test_langchain_makes_images_of_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    mermaid = pytest.importorskip("langchain_core.runnables.graph_mermaid")
    png = pytest.importorskip("langchain_core.runnables.graph_png")
    asked: dict[str, Any] = {}
    monkeypatch.setattr(mermaid, "draw_mermaid_png", lambda **options: asked.update(options) or b"image")
    monkeypatch.setattr(png.PngDrawer, "draw", lambda self, graph, path: asked.update(graph=graph, path=path))
    drawing = compiled("graphd").get_graph()
    assert drawing.draw_mermaid_png(background_color="blue") == b"image"
    assert (asked["background_color"], asked["mermaid_syntax"]) == ("blue", drawing.draw_mermaid())
    assert drawing.draw_png("file.png") is None
    assert (list(asked["graph"].nodes), asked["path"]) == (["__start__", "one", "two", "__end__"], "file.png")


def test_chains_draw_their_graphs() -> None:
    pytest.importorskip("langgraph")
    runnables = pytest.importorskip("langchain_core.runnables")
    chains = {name: compiled(name) | runnables.RunnableLambda(step) for name in ("graphd", "langgraph")}
    texts = {name: chain.get_graph().draw_mermaid() for name, chain in chains.items()}
    assert texts["graphd"] == texts["langgraph"]
    assert "one --> " in texts["graphd"] or "one -.-> " in texts["graphd"]
