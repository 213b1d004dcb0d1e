"""A saver for LangGraph: LangGraph runs the graph, and graphd keeps its threads."""

from graphd.checkpoint.langgraph.saver import GraphdSaver

__all__ = ["GraphdSaver"]
