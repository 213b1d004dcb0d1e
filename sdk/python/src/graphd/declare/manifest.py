"""What a worker offers to a server."""

from __future__ import annotations

from typing import NamedTuple

from graphd._gen.v1 import graph_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.declare.spec import build_spec
from graphd.names import wire_name


class Manifest(NamedTuple):
    """Graphs that the worker brings along, and nodes of graphs that the server has."""

    graphs: list[graph_pb2.GraphSpec]
    nodes: list[pb.ServedNode]


def build_manifest(program: Program) -> Manifest:
    """A program with the graphs inside of it; of a part of a graph, its nodes alone."""
    if not program.is_part:
        below = [build_spec(child, as_child=True) for child in program.descendants()]
        return Manifest([*below, build_spec(program)], [])
    served = [
        pb.ServedNode(graph=program.name, graph_version=program.version, node=wire_name(name)) for name in program.nodes
    ]
    return Manifest([], served)


__all__ = ["Manifest", "build_manifest"]
