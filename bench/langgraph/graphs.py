"""The graphs of the benchmark, declared with LangGraph or with graphd: they have the same names."""

from __future__ import annotations

import itertools
from typing import Any, TypedDict

LENGTH = 10


class Question(TypedDict, total=False):
    x: int
    answer: str


class Chain(TypedDict):
    x: int


def add_one(state: Any) -> dict[str, int]:
    return {"x": state["x"] + 1}


class Declaration:
    """The builders of the graphs, with the names of one library."""

    def __init__(self, library: Any, interrupt: Any) -> None:
        self.library, self.interrupt = library, interrupt

    def ask(self, state: Question) -> dict[str, Any]:
        return {"answer": self.interrupt(state["x"])}

    def question(self) -> Any:
        return self.build(Question, {"a": add_one, "ask": self.ask, "z": add_one})

    def chain(self) -> Any:
        return self.build(Chain, {f"n{i}": add_one for i in range(LENGTH)})

    def build(self, state: type[Any], nodes: dict[str, Any]) -> Any:
        """A graph of nodes one after the other."""
        builder = self.library.StateGraph(state)
        for name, node in nodes.items():
            builder.add_node(name, node)
        for source, target in itertools.pairwise([self.library.START, *nodes, self.library.END]):
            builder.add_edge(source, target)
        return builder
