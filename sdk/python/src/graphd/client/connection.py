"""Where the runs and the states of a graph are."""

from __future__ import annotations

from dataclasses import dataclass

from graphd.transport.server import Server


@dataclass(frozen=True)
class GraphConnection:
    """A server, and the versions of the graphs that it has from this process."""

    server: Server
    versions: dict[str, str]

    def version(self, graph: str) -> str:
        """The version of a graph here, "" if it is not known."""
        return self.versions.get(graph, "")
