"""Compiled graphs: where declaring, starting runs and working meet."""

from graphd.compiled.graph import CompiledStateGraph, Pregel

__all__ = ["CompiledStateGraph", "Pregel"]
