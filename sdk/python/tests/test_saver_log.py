"""What GraphdSaver stores, and what its calls cost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from typing import Any

import pytest

from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.dev import DevServer
from graphd.errors import GraphdError

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from graphd.checkpoint.langgraph import GraphdSaver
from graphd.checkpoint.langgraph.threads import Place, find_places
from tests.counted_saver import at, counted, ids, new_config, put


def test_what_calls_cost(server: DevServer) -> None:
    saver, stubs = counted(server)
    saver.setup()
    stubs.take_calls()
    config = put(saver, new_config())
    assert stubs.take_calls() == {"BulkUpdateState": 2, "CreateThread": 1}
    config = put(saver, config)
    assert stubs.take_calls() == {"BulkUpdateState": 1}
    for task in "abc":
        saver.put_writes(config, [("x", task)], task)
    assert stubs.take_calls() == {"BulkUpdateState": 3}
    assert saver.get_tuple(at(config, None)) is not None
    assert stubs.take_calls() == {"ListCheckpoints": 1}
    saver.put_writes(config, [("x", "d")], "d")
    stubs.take_calls()
    assert saver.get_tuple(config) is not None
    assert stubs.take_calls() == {"ListCheckpoints": 2}
    saver.copy_thread(config["configurable"]["thread_id"], new_config()["configurable"]["thread_id"])
    assert stubs.take_calls() == {"ListThreads": 1, "ListCheckpoints": 1, "CopyThread": 1}
    saver.prune([config["configurable"]["thread_id"]])
    assert stubs.take_calls() == {"ListThreads": 1, "GetThread": 1, "ListCheckpoints": 2, "PruneThread": 1}
    assert len(ids(saver, config)) == 1
    stubs.take_calls()
    saver.delete_thread(config["configurable"]["thread_id"])
    assert stubs.take_calls() == {"ListThreads": 1, "DeleteThread": 1}
    assert saver.get_tuple(at(config, None)) is None


def test_a_large_checkpoint_is_stored_in_parts(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    large = 'ä\\"' * (1 << 20)
    first = put(saver, new_config(), value=large)
    second = put(saver, first, value="small")
    saver.put_writes(second, [("x", large)], "task")
    found = saver.get_tuple(at(first, None))
    assert found is not None and found.pending_writes == [("task", "x", large)]
    assert [t.checkpoint["channel_values"]["x"] for t in saver.list(at(first, None))] == ["small", large]
    saver.prune([first["configurable"]["thread_id"]])
    assert ids(saver, first) == [second["configurable"]["checkpoint_id"]]
    third = put(saver, second, value="x" * (8 << 20))
    found = saver.get_tuple(third)
    assert found is not None and found.checkpoint["channel_values"]["x"] == "x" * (8 << 20)


def test_a_large_checkpoint_counts_when_it_is_complete(server: DevServer) -> None:
    saver, stubs = counted(server)
    first = put(saver, new_config())
    later: list[Any] = []

    def fail() -> None:
        later.append(put(GraphdSaver(server.address), first, value="other"))  # between two parts
        raise RuntimeError("dies")

    writes = 0

    def fail_at_second() -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            fail()
        stubs.before["BulkUpdateState"] = fail_at_second

    stubs.before["BulkUpdateState"] = fail_at_second
    with pytest.raises(RuntimeError, match="dies"):
        put(saver, first, value="x" * (8 << 20))
    assert ids(saver, first) == [c["configurable"]["checkpoint_id"] for c in (*later, first)]
    second = put(saver, later[0])
    assert ids(saver, first) == [c["configurable"]["checkpoint_id"] for c in (second, *later, first)]


def test_writes_may_come_before_their_checkpoint(server: DevServer) -> None:
    """LangGraph stores both in the background, in any order."""
    saver, stubs = counted(server)
    parent = put(saver, new_config())
    checkpoint = empty_checkpoint()
    child = at(parent, checkpoint["id"])
    saver.put_writes(child, [("x", "before"), ("x", "second")], "b")
    stubs.before["BulkUpdateState"] = lambda: saver.put_writes(child, [("x", "meanwhile")], "a")
    saver.put(parent, checkpoint, {}, {})
    saver.put_writes(child, [("x", "after")], "c")
    saver.put_writes(child, [("x", "repeated")], "b")
    written = [("a", "x", "meanwhile"), ("b", "x", "before"), ("b", "x", "second"), ("c", "x", "after")]
    for reader in (saver, GraphdSaver(server.address)):
        found = reader.get_tuple(child)
        assert found is not None and found.pending_writes == written
    saver.put(parent, checkpoint, {"step": 2}, {})
    again = GraphdSaver(server.address).get_tuple(child)
    assert again is not None and again.pending_writes == written and again.metadata["step"] == 2
    assert ids(saver, child) == [checkpoint["id"], parent["configurable"]["checkpoint_id"]]


def test_writes_are_in_the_order_of_langgraph(server: DevServer) -> None:
    tasks = [("t2", "~a", "1"), ("t1", "~b", "2"), ("t3", "", "3")]
    both = GraphdSaver(server.address), InMemorySaver()
    read = []
    for saver in both:
        config = put(saver, new_config())
        for task, path, value in tasks:
            saver.put_writes(config, [("x", value), ("__interrupt__", value)], task, path)
        saver.put_writes(config, [("__interrupt__", "again")], "t2", "~a")
        found = saver.get_tuple(config)
        assert found is not None
        read.append(found.pending_writes)
    assert read[0] == read[1]
    assert ("t2", "__interrupt__", "again") in (read[0] or [])


def test_many_programs_write_at_once(server: DevServer) -> None:
    config = put(GraphdSaver(server.address), new_config())

    def write(task: str) -> None:
        GraphdSaver(server.address).put_writes(config, [("x", task)], task)

    writers = [threading.Thread(target=write, args=(f"{n:02}",)) for n in range(20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = GraphdSaver(server.address).get_tuple(config)
    assert found is not None
    assert found.pending_writes == [(f"{n:02}", "x", f"{n:02}") for n in range(20)]


def test_lists(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    thread = f'odd "\\ {uuid.uuid4()}'
    root = [put(saver, new_config(thread=thread), step=n) for n in range(3)]
    inner = put(saver, new_config("sub:1|x:2", thread), run="inner")
    everything = {"configurable": {"thread_id": thread}}
    assert {t.config["configurable"]["checkpoint_id"] for t in saver.list(everything)} == {
        c["configurable"]["checkpoint_id"] for c in (*root, inner)
    }
    assert thread in {t.config["configurable"]["thread_id"] for t in saver.list(None)}
    assert [t.config for t in saver.list(at(inner, None))] == [inner]
    assert [t.config for t in saver.list(root[1])] == [root[1]]
    assert [t.config for t in saver.list(at(root[0], None), before=root[2], limit=1)] == [root[1]]
    assert [t.config for t in saver.list(at(root[0], None), filter={"step": 0})] == [root[0]]
    assert list(saver.list(at(root[0], None), limit=0)) == []
    assert find_places(saver._choice.stubs, thread) == [Place(thread, "sub:1|x:2"), Place(thread, "")]


def test_what_is_wrong_is_named(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    with pytest.raises(ValueError, match=r"configurable\.thread_id is missing"):
        saver.get_tuple({"configurable": {}})
    with pytest.raises(ValueError, match=r"configurable\.checkpoint_id is missing"):
        saver.put_writes(new_config(), [("x", 1)], "task")


@pytest.mark.parametrize(
    "foreign", [7, None, "text", {}, {"of": 1}, {"writes": 7}, {"writes": [], "checkpoint": {"id": 1}}]
)
def test_a_foreign_record_is_named(server: DevServer, foreign: Any) -> None:
    saver = GraphdSaver(server.address)
    config = put(saver, new_config())
    step = ts.StateUpdate(values=payload_pb2.Payload(json=json.dumps({"record": foreign})), as_node="put")
    request = ts.BulkUpdateStateRequest(
        thread_id=Place(config["configurable"]["thread_id"], "").wire_id, supersteps=[ts.StateSuperstep(updates=[step])]
    )
    saver._choice.stubs.threads.BulkUpdateState(request)
    with pytest.raises(GraphdError, match="has no record of GraphdSaver under 'record'") as caught:
        saver.get_tuple(at(config, None))
    assert caught.value.reason == "CHECKPOINT_CORRUPT" and request.thread_id in str(caught.value)
    saver.delete_thread(config["configurable"]["thread_id"])


def test_names_that_are_too_long_are_refused(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    with pytest.raises(ValueError, match=r"configurable\.thread_id has 1025 bytes; want at most 1024"):
        put(saver, new_config(thread="x" * 1025))
    with pytest.raises(ValueError, match=r"configurable\.checkpoint_ns has 1026 bytes; want at most 1024"):
        put(saver, new_config("ä" * 513))
    long = put(saver, new_config("ä" * 512, "x" * 1024))
    assert ids(saver, long) == [long["configurable"]["checkpoint_id"]]
    saver.delete_thread("x" * 1024)
    assert ids(saver, long) == []


def test_without_langgraph_the_import_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['langgraph.checkpoint.base'] = None\n"
        "import graphd\n"
        "try:\n    import graphd.checkpoint.langgraph\n"
        "except ImportError as error:\n    print(error)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install langgraph-checkpoint" in told.stdout
