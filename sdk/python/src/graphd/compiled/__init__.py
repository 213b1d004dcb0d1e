"""Compiled graphs: where declaring, starting runs and working meet.

Nothing below knows this room, except ``StateGraph.compile``, which ends here.
"""

from graphd.compiled.graph import CompiledStateGraph

__all__ = ["CompiledStateGraph"]
