"""Tells a compiled graph from everything else that can be a node."""


class CompiledGraph:
    """A graph that was compiled; it may be a node of another one, or be called there.

    It has a ``program``, and a ``persistence`` that says how it keeps its state
    inside of another graph.
    """

    @property
    def is_function(self) -> bool:
        """It is an entrypoint: in another graph it is called with the state, and returns an update."""
        return False
