"""The program that type checkers read runs: what its types say is so. ``make python-lint`` has mypy and pyright check it."""

from __future__ import annotations

from graphd.graph import StateGraph
from graphd.graph.state import CompiledStateGraph
from graphd.pregel import Pregel
from tests.typing import order_desk


def test_the_typed_program_runs() -> None:
    played = order_desk.main()
    assert played["order"] == [
        "custom: ['clerk', 'total']",
        "updates: ['price']",
        "updates: ['check']",
        "updates: ['check']",
        "updates: ['__interrupt__']",
        "('review',) 150 True",
        "order-1-150",
        "update",
        "update",
    ]
    assert played["chat"] == ["It costs 4."]
    assert played["mistake"] == ["InvalidUpdate"]


def test_types_are_for_checkers_alone() -> None:
    builder = StateGraph[order_desk.Order, order_desk.Desk](order_desk.Order)
    assert type(builder) is StateGraph
    assert CompiledStateGraph[order_desk.Order] is CompiledStateGraph
    assert Pregel[order_desk.Order] is Pregel
