"""A saver for LangGraph: LangGraph runs the graph, and graphd keeps its threads."""

import importlib

try:
    importlib.import_module("langgraph.checkpoint.base")
except ImportError as missing:
    raise ImportError(
        "graphd.checkpoint.langgraph is for programs that run on LangGraph, and needs its package: "
        "pip install langgraph-checkpoint. Programs that run on graphd use graphd.checkpoint.memory"
    ) from missing

from graphd.checkpoint.langgraph.saver import GraphdSaver

__all__ = ["GraphdSaver"]
