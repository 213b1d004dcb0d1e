"""The runs that callback handlers are told of, when tasks run side by side."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from graphd.runtime.callbacks import run_plain
from graphd.runtime.open_runs import OpenRuns
from graphd.runtime.traced_graph import TracedGraph
from graphd.runtime.traced_runs import GraphRun, NodeRun, TracedTask


class SlowNode(NodeRun):
    """A node whose edges decide at the same moment."""

    @property
    def decisions(self) -> int:  # type: ignore[override]
        found = self._left
        time.sleep(0.05)
        return found

    @decisions.setter
    def decisions(self, left: int) -> None:
        self._left = left


def test_a_node_ends_when_all_its_edges_have_decided() -> None:
    ended: list[str] = []
    run = SimpleNamespace(on_chain_end=lambda output: ended.append("node"), handlers=[])
    together = threading.Barrier(2, timeout=60)

    def end_edge(output: Any) -> None:
        ended.append("edge")
        together.wait()

    edge = SimpleNamespace(on_chain_end=end_edge)
    program: Any = None
    graph = GraphRun(run, program, ())
    task = TracedTask("id", "node", (), 1, [], {}, decisions=2)
    traced = TracedGraph(program, None, None, "graph")
    traced._runs = OpenRuns(graph, None)
    traced._runs.nodes[task.id] = SlowNode(run, graph, task, 2)
    deciding = [threading.Thread(target=lambda: run_plain(traced.end_decision(task, edge, ["next"]))) for _ in range(2)]
    for thread in deciding:
        thread.start()
    for thread in deciding:
        thread.join()
    assert ended == ["edge", "edge", "node"]
