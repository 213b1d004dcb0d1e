"""Threads of GraphdSaver that are pruned, copied and rewritten, while others write and programs die."""

from __future__ import annotations

from typing import Any

import pytest

from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.dev import DevServer
from graphd.errors import GraphdError

pytest.importorskip("langgraph.checkpoint.base")

from graphd.checkpoint.langgraph import GraphdSaver
from graphd.checkpoint.langgraph.threads import Place, find_places
from tests.counted_saver import counted, ids, new_config, put


def test_runs_are_deleted_while_others_write(server: DevServer) -> None:
    saver, stubs = counted(server)
    first = put(saver, new_config(), run="gone")
    second = put(saver, first, run="kept", value="x" * (5 << 20))
    third = put(saver, second, run="gone")
    saver.put_writes(second, [("x", "w")], "task")
    during: list[Any] = []
    other = GraphdSaver(server.address)
    stubs.before["BulkUpdateState"] = lambda: during.append(put(other, third, run="kept"))
    stubs.before["PruneThread"] = lambda: during.append(put(other, during[0], run="kept"))
    saver.delete_for_runs(["gone"])
    assert stubs.take_calls()["PruneThread"] == 2, "it saw the second change"
    kept = [*reversed(during), second]
    assert ids(saver, first) == [c["configurable"]["checkpoint_id"] for c in kept]
    for config in kept:
        found = saver.get_tuple(config)
        assert found is not None and found.pending_writes == ([("task", "x", "w")] if config == second else [])
    left = stubs.threads.ListCheckpoints(_pages_of(first)).checkpoints
    assert len(left) == 9 + 2, "the parts of the large one, and two others"
    saver.delete_for_runs(["kept"])
    assert find_places(saver._choice.stubs, first["configurable"]["thread_id"]) == []


def _pages_of(config: Any) -> Any:
    return ts.ListCheckpointsRequest(thread_id=Place(config["configurable"]["thread_id"], "").wire_id, page_size=100)


def test_a_program_that_dies_while_it_deletes_runs_loses_nothing(server: DevServer) -> None:
    saver, stubs = counted(server)
    first = put(saver, new_config(), run="gone")
    second = put(saver, first, run="kept")

    def die() -> None:
        raise RuntimeError("dies")

    stubs.before["PruneThread"] = die
    with pytest.raises(RuntimeError, match="dies"):
        saver.delete_for_runs(["gone"])
    assert ids(saver, first) == [second["configurable"]["checkpoint_id"]]


def test_a_thread_is_pruned_while_others_write(server: DevServer) -> None:
    saver, stubs = counted(server)
    first = put(saver, put(saver, new_config()))
    during: list[Any] = []
    stubs.before["PruneThread"] = lambda: during.append(put(GraphdSaver(server.address), first))
    saver.prune([first["configurable"]["thread_id"]])
    assert ids(saver, first) == [during[0]["configurable"]["checkpoint_id"]]
    with pytest.raises(ValueError, match="strategy 'keep': want"):
        saver.prune([], strategy="keep")
    saver.prune(["not-there"])
    saver.prune([first["configurable"]["thread_id"]], strategy="delete")
    assert ids(saver, first) == []


def test_a_long_thread_is_copied_whole(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    config = put(saver, new_config())
    for n in range(1001):
        config = put(saver, config, step=n)
    saver.put_writes(config, [("x", "w")], "task")
    target = new_config()["configurable"]["thread_id"]
    saver.copy_thread(config["configurable"]["thread_id"], target)
    copied = list(saver.list(new_config(thread=target)))
    assert len(copied) == 1002 and copied[0].pending_writes == [("task", "x", "w")]
    assert [t.checkpoint["id"] for t in copied] == ids(saver, config)
    with pytest.raises(GraphdError) as caught:
        saver.copy_thread(config["configurable"]["thread_id"], target)
    assert caught.value.reason == "THREAD_EXISTS"
    with pytest.raises(GraphdError) as caught:
        saver.copy_thread("not-there", "target")
    assert caught.value.reason == "THREAD_NOT_FOUND"
