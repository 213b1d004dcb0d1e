"""Graphs of a server, and the server itself."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from graphd._gen.v1 import graph_pb2
from graphd._gen.v1 import registry_service_pb2 as rs
from graphd.remote.caller import AsyncCaller, Caller, Page
from graphd.remote.fields import read_time, read_value
from graphd.transport.unary import Call

_PAGE = 100


@dataclass(frozen=True)
class Graph:
    """A version of a graph that the server has."""

    name: str
    version: str
    versions: tuple[str, ...]
    """All versions that the server has, oldest first."""
    description: str
    input_schema: Any
    """JSON Schema of the input; None where it is unchecked."""
    output_schema: Any
    context_schema: Any
    created_at: datetime.datetime | None


class Graphs:
    """The graphs of a server."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, name: str, *, version: str = "") -> Graph:
        """Reads a graph: its newest version without another. Raises NotFoundError."""
        return self._caller.perform(_get_graph(name, version))

    def list(self) -> Iterator[Graph]:
        """Lists the newest version of each graph, by name."""
        return self._caller.list_entries(_list_graphs)

    def put(self, document: str) -> Graph:
        """Checks a graph file, YAML or JSON, and keeps it under its version.

        The same again changes nothing. Raises InvalidGraphError with every problem in ``violations``.
        """
        return self._caller.perform(_put_graph(document))


class AsyncGraphs:
    """The graphs of a server, for async programs. The methods are those of Graphs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, name: str, *, version: str = "") -> Graph:
        """Like Graphs.get."""
        return await self._caller.perform(_get_graph(name, version))

    def list(self) -> AsyncIterator[Graph]:
        """Like Graphs.list; for ``async for``."""
        return self._caller.list_entries(_list_graphs)

    async def put(self, document: str) -> Graph:
        """Like Graphs.put."""
        return await self._caller.perform(_put_graph(document))


def _get_graph(name: str, version: str) -> Call[Graph]:
    request = rs.GetGraphRequest(graph=name, version=version, view=graph_pb2.GRAPH_VIEW_BASIC)
    return Call(lambda s: s.registry.GetGraph, request, _read_graph)


def _list_graphs(token: str) -> Call[Page[Graph]]:
    request = rs.ListGraphsRequest(page_size=_PAGE, page_token=token)
    return Call(
        lambda s: s.registry.ListGraphs,
        request,
        lambda r: Page([_read_graph(one) for one in r.graphs], r.next_page_token),
    )


def _put_graph(document: str) -> Call[Graph]:
    return Call(lambda s: s.registry.PutGraph, rs.PutGraphRequest(document=document), _read_graph)


def _read_graph(graph: graph_pb2.Graph) -> Graph:
    return Graph(
        name=graph.graph,
        version=graph.version,
        versions=tuple(graph.versions),
        description=graph.description,
        input_schema=read_value(graph, "input_schema"),
        output_schema=read_value(graph, "output_schema"),
        context_schema=read_value(graph, "context_schema"),
        created_at=read_time(graph, "create_time"),
    )
