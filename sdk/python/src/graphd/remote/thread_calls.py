"""The calls about threads and their states: their requests, and what the answers mean."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2, thread_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.client.labels import to_labels
from graphd.client.snapshots import SnapshotReader
from graphd.names import wire_levels, wire_name, wire_thread
from graphd.remote.caller import Page
from graphd.remote.fields import write_filter, write_metadata_filter
from graphd.remote.thread import Thread, read_thread
from graphd.transport.unary import Call
from graphd.values.state import StateSnapshot

_PAGE = 100


def create_thread(
    thread_id: str | None, graph: str, version: str, metadata: Mapping[str, Any] | None, ttl: float | None
) -> Call[Thread]:
    """Makes a thread."""
    request = ts.CreateThreadRequest(
        thread_id=wire_thread("", uuid.uuid4().hex if thread_id is None else thread_id), request_id=uuid.uuid4().hex
    )
    request.thread.graph, request.thread.graph_version = graph, version
    request.thread.metadata.update(to_labels({"metadata": metadata or {}}))
    if ttl is not None:
        if not ttl > 0:
            raise ValueError(f"ttl is {ttl!r}: want seconds above 0, or None to keep the thread")
        request.thread.ttl.FromNanoseconds(round(ttl * 1e9))
    return Call(lambda s: s.threads.CreateThread, request, read_thread)


def get_thread(thread_id: str, *, values: bool) -> Call[Thread]:
    """Reads a thread."""
    view = thread_pb2.THREAD_VIEW_FULL if values else thread_pb2.THREAD_VIEW_BASIC
    request = ts.GetThreadRequest(thread_id=wire_thread("", thread_id), view=view)
    return Call(lambda s: s.threads.GetThread, request, read_thread)


def list_threads(
    graph: str | None, state: str | None, metadata: Mapping[str, Any] | None, token: str
) -> Call[Page[Thread]]:
    """Reads a page of threads."""
    conditions = {"graph": graph, "state": state.upper() if state is not None else None}
    request = ts.ListThreadsRequest(
        page_size=_PAGE, page_token=token, filter=write_filter(conditions | write_metadata_filter(metadata))
    )
    return Call(
        lambda s: s.threads.ListThreads,
        request,
        lambda r: Page([read_thread(one) for one in r.threads], r.next_page_token),
    )


def set_metadata(thread_id: str, metadata: Mapping[str, Any]) -> Call[Thread]:
    """Replaces the labels of a thread."""
    request = ts.UpdateThreadRequest(thread=thread_pb2.Thread(thread_id=wire_thread("", thread_id)))
    request.thread.metadata.update(to_labels({"metadata": metadata}))
    request.update_mask.paths.append("metadata")
    return Call(lambda s: s.threads.UpdateThread, request, read_thread)


def delete_thread(thread_id: str, *, force: bool) -> Call[None]:
    """Deletes a thread. A repeated call would find none."""
    request = ts.DeleteThreadRequest(thread_id=wire_thread("", thread_id), force=force)
    return Call(lambda s: s.threads.DeleteThread, request, lambda _: None, repeatable=False)


def copy_thread(thread_id: str, target: str | None) -> Call[Thread]:
    """Makes a thread that is what another is."""
    request = ts.CopyThreadRequest(
        source_thread_id=wire_thread("", thread_id),
        thread_id=wire_thread("", uuid.uuid4().hex if target is None else target),
        request_id=uuid.uuid4().hex,
    )
    return Call(lambda s: s.threads.CopyThread, request, read_thread)


def get_state(
    thread_id: str, checkpoint_id: str, namespace: Sequence[str], keys: Sequence[str], *, subgraphs: bool
) -> Call[StateSnapshot]:
    """Reads the state at a checkpoint."""
    request = ts.GetStateRequest(thread_id=wire_thread("", thread_id), keys=keys, subgraphs=subgraphs)
    if checkpoint_id or namespace:
        request.at.CopyFrom(_build_reference(checkpoint_id, namespace))
    return Call(lambda s: s.threads.GetState, request, lambda r: read_snapshot(thread_id, r))


def update_state(
    thread_id: str, values: Any, as_node: str | None, checkpoint_id: str, *, drop_questions: bool
) -> Call[StateSnapshot]:
    """Writes to the state as if a node had done it."""
    request = ts.UpdateStateRequest(
        thread_id=wire_thread("", thread_id),
        values=codec.to_payload(values),
        as_node=wire_name(as_node or ""),
        supersede_interrupts=drop_questions,
        request_id=uuid.uuid4().hex,
    )
    if checkpoint_id:
        request.at.CopyFrom(_build_reference(checkpoint_id, ()))
    return Call(lambda s: s.threads.UpdateState, request, lambda r: read_snapshot(thread_id, r))


def list_checkpoints(
    thread_id: str, namespace: Sequence[str], token: str, *, values: bool
) -> Call[Page[thread_pb2.StateSnapshot]]:
    """Reads a page of checkpoints."""
    request = ts.ListCheckpointsRequest(
        thread_id=wire_thread("", thread_id),
        namespace=wire_levels(namespace),
        page_size=_PAGE,
        page_token=token,
        include_values=values,
    )
    return Call(lambda s: s.threads.ListCheckpoints, request, lambda r: Page(list(r.checkpoints), r.next_page_token))


def read_snapshot(thread_id: str, state: thread_pb2.StateSnapshot) -> StateSnapshot:
    """A state of the server. Its values are plain JSON."""
    return SnapshotReader({"configurable": {"thread_id": thread_id}}, {}).read_snapshot(state)


def _build_reference(checkpoint_id: str, namespace: Sequence[str]) -> payload_pb2.CheckpointRef:
    return payload_pb2.CheckpointRef(checkpoint_id=checkpoint_id, namespace=wire_levels(namespace))
