"""Threads of graphd that hold the checkpoints of LangGraph, one for each thread and namespace."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from graphd._gen.v1 import graph_pb2, registry_service_pb2, thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.constants import END, START
from graphd.errors import GraphdError
from graphd.transport.server import call_unary, retry_read, retry_write

GRAPH = "langgraph-checkpoints"
"""The graph of these threads."""

CHANNEL = "record"
"""The only key of its state: what the checkpoint of graphd adds to the log of the thread."""

PUT, PUT_WRITES = "put", "put_writes"
"""Its nodes: the calls of a saver in whose name the state is updated. They do nothing."""

LONGEST_LABEL = 1024
"""Bytes of a label, so also of an id of a thread and of a namespace."""

_THREAD_LABEL, _NAMESPACE_LABEL = "langgraph_thread", "langgraph_namespace"
_LONGEST_ID = 128


class Place(NamedTuple):
    """A thread of LangGraph and a namespace in it."""

    thread_id: str
    namespace: str

    @property
    def wire_id(self) -> str:
        """The id of its thread in graphd: readable where the alphabet of ids allows it."""
        text = f"langgraph.{self.thread_id}"
        readable = len(text) <= _LONGEST_ID and self.thread_id.isascii()
        if not self.namespace and readable and all(c.isalnum() or c in "_.:-" for c in self.thread_id):
            return text
        return f"langgraph:{hashlib.sha256(json.dumps(self).encode()).hexdigest()}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its thread in graphd, by which it is found."""
        return {_THREAD_LABEL: self.thread_id, _NAMESPACE_LABEL: self.namespace}


def create_thread(stubs: Any, place: Place) -> None:
    """Makes a thread that keeps its whole history, and the graph when there is none.
    Fails with THREAD_EXISTS."""
    thread = thread_pb2.Thread(graph=GRAPH, metadata=place.labels, keep_checkpoints=-1)
    request = ts.CreateThreadRequest(thread_id=place.wire_id, thread=thread, request_id=uuid.uuid4().hex)
    try:
        retry_write(stubs.threads.CreateThread, request)
    except GraphdError as problem:
        if problem.reason != "GRAPH_NOT_FOUND":
            raise
        put_graph(stubs)
        request.request_id = uuid.uuid4().hex
        retry_write(stubs.threads.CreateThread, request)


def put_graph(stubs: Any) -> None:
    """Makes the graph known to the server; the same again changes nothing."""
    nodes = [graph_pb2.NodeSpec(name=name, expr=graph_pb2.ExprSpec()) for name in (PUT, PUT_WRITES)]
    spec = graph_pb2.GraphSpec(
        name=GRAPH,
        description="Checkpoints of LangGraph, written by GraphdSaver of the Python SDK. It is not run.",
        strict=True,
        channels=[graph_pb2.ChannelSpec(name=CHANNEL)],
        nodes=nodes,
        edges=[graph_pb2.EdgeSpec(sources=[START], target=node.name) for node in nodes]
        + [graph_pb2.EdgeSpec(sources=[node.name], target=END) for node in nodes],
    )
    retry_read(stubs.registry.PutGraph, registry_service_pb2.PutGraphRequest(spec=spec))


def find_places(stubs: Any, thread_id: str | None) -> list[Place]:
    """The places of a thread of LangGraph, or of all threads, the last created first."""
    wanted = f"graph = {_quote(GRAPH)}"
    if thread_id is not None:
        wanted += f" AND metadata.{_THREAD_LABEL} = {_quote(thread_id)}"
    return list(dict.fromkeys(_list_places(stubs, wanted)))


def _list_places(stubs: Any, wanted: str) -> Iterator[Place]:
    request = ts.ListThreadsRequest(page_size=500, filter=wanted)
    while True:
        page = retry_read(stubs.threads.ListThreads, request)
        for thread in page.threads:
            if _THREAD_LABEL in thread.metadata:
                yield Place(thread.metadata[_THREAD_LABEL], thread.metadata.get(_NAMESPACE_LABEL, ""))
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def delete_place(stubs: Any, place: Place) -> None:
    """Deletes the thread of a place; one that is gone is no error."""
    try:
        call_unary(stubs.threads.DeleteThread, ts.DeleteThreadRequest(thread_id=place.wire_id, force=True))
    except GraphdError as problem:
        if problem.reason != "THREAD_NOT_FOUND":
            raise
