"""The same chain in LangGraph itself, with its InMemorySaver.

Prints the version when it is ready. For every line of its input it runs the
chain in a new thread and prints the seconds that took.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from typing import TypedDict

try:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph
except ImportError:
    sys.exit(3)

LENGTH = 10


class State(TypedDict):
    x: int


def node(state: State) -> State:
    return {"x": state["x"] + 1}


def main() -> None:
    names = [f"n{i}" for i in range(LENGTH)]
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(source, target)
    graph = builder.compile(checkpointer=InMemorySaver())
    print(importlib.metadata.version("langgraph"), flush=True)
    for number, _ in enumerate(sys.stdin):
        began = time.perf_counter()
        out = graph.invoke({"x": 0}, {"configurable": {"thread_id": str(number)}})
        took = time.perf_counter() - began
        if out != {"x": LENGTH}:
            raise SystemExit(f"the chain came to {out}")
        print(took, flush=True)


if __name__ == "__main__":
    main()
