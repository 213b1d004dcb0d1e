"""What GraphdSaver stores, and what its calls cost."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections import Counter
from typing import Any

import pytest

from graphd.dev import DevServer
from graphd.errors import GraphdError

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from graphd.checkpoint.langgraph import GraphdSaver
from graphd.checkpoint.langgraph.threads import Place, find_places


class CountedStubs:
    """The services of a server, with the methods that were called."""

    def __init__(self, stubs: Any) -> None:
        self._stubs = stubs
        self.called: list[str] = []
        self.before: dict[str, Any] = {}

    def take_calls(self) -> Counter[str]:
        called, self.called = Counter(self.called), []
        return called

    def __getattr__(self, service: str) -> Any:
        return CountedService(self, getattr(self._stubs, service))


class CountedService:
    def __init__(self, counted: CountedStubs, service: Any) -> None:
        self._counted, self._service = counted, service

    def __getattr__(self, method: str) -> Any:
        def call(request: Any) -> Any:
            self._counted.called.append(method)
            if (hook := self._counted.before.pop(method, None)) is not None:
                hook()
            return getattr(self._service, method)(request)

        return call


class FixedChoice:
    def __init__(self, stubs: Any) -> None:
        self.stubs = stubs


def counted(server: DevServer) -> tuple[GraphdSaver, CountedStubs]:
    saver = GraphdSaver(server.address)
    stubs = CountedStubs(saver._choice.stubs)
    saver._choice = FixedChoice(stubs)  # type: ignore[assignment]
    return saver, stubs


def new_config(namespace: str = "", thread: str | None = None) -> Any:
    return {"configurable": {"thread_id": thread or f"log-{uuid.uuid4()}", "checkpoint_ns": namespace}}


def put(saver: Any, config: Any, *, value: Any = "v", run: str = "r", step: int = 0) -> Any:
    checkpoint = empty_checkpoint() | {"channel_values": {"x": value}, "channel_versions": {"x": 1}}
    return saver.put(config, checkpoint, {"source": "loop", "step": step, "run_id": run}, {"x": 1})


def at(config: Any, checkpoint_id: str | None) -> Any:
    return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}


def ids(saver: Any, config: Any) -> list[str]:
    return [t.checkpoint["id"] for t in saver.list(at(config, None))]


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
    from graphd._gen.v1 import thread_service_pb2 as ts

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


def test_what_is_wrong_is_named(server: DevServer) -> None:
    saver = GraphdSaver(server.address)
    with pytest.raises(ValueError, match=r"configurable\.thread_id is missing"):
        saver.get_tuple({"configurable": {}})
    with pytest.raises(ValueError, match=r"configurable\.checkpoint_id is missing"):
        saver.put_writes(new_config(), [("x", 1)], "task")


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
