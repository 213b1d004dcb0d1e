"""Random calls, of which GraphdSaver and the saver of LangGraph must make the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from graphd.dev import DevServer

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from graphd.checkpoint.langgraph import GraphdSaver

CHANNELS = ["x", "y", "__interrupt__", "__error__", "__resume__"]


class RandomCalls:
    """Makes the same call on both savers, and compares what they return."""

    def __init__(self, server: DevServer, seed: int) -> None:
        self.random = random.Random(seed)
        self.theirs = InMemorySaver()
        # One of two programs makes each call; a program goes on with what it has stored itself.
        self.programs = [GraphdSaver(server.address), GraphdSaver(server.address)]
        self.threads = [f"oracle-{seed}-{n}" for n in range(2)]
        self.stored: list[Any] = []

    def place(self) -> Any:
        namespace = self.random.choice(["", "sub:1", "sub:1|inner:2"])
        return {"configurable": {"thread_id": self.random.choice(self.threads), "checkpoint_ns": namespace}}

    def compare(self, call: Any) -> Any:
        expected = plain(call(self.theirs))
        assert plain(call(self.random.choice(self.programs))) == expected
        return expected

    def put(self) -> None:
        place = self.random.choice(self.stored) if self.stored and self.random.random() < 0.7 else self.place()
        values = {
            c: self.random.choice([1, "a", ["b", {"c": None}], b"\x00\xff"]) for c in "xy" if self.random.random() < 0.8
        }
        versions = {c: self.random.randrange(1, 10**9) for c in values}
        checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
        metadata: Any = {"source": self.random.choice(["input", "loop"]), "step": len(self.stored), "parents": {}}
        early = self.random.random() < 0.3
        after = {"configurable": {**place["configurable"], "checkpoint_id": checkpoint["id"]}}
        program = self.random.choice(self.programs)
        writes, task = self.some_writes(), str(self.random.randrange(3))
        for saver in (self.theirs, program):
            if early:
                saver.put_writes(after, writes, task)
            saver.put(place, checkpoint, metadata, versions)
        self.stored.append(after)

    def some_writes(self) -> list[tuple[str, Any]]:
        return [(self.random.choice(CHANNELS), self.random.randrange(100)) for _ in range(self.random.randrange(1, 4))]

    def put_writes(self) -> None:
        if not self.stored:
            return
        config, writes = self.random.choice(self.stored), self.some_writes()
        task, path = str(self.random.randrange(3)), self.random.choice(["", "~b", "~a"])
        for saver in (self.theirs, self.random.choice(self.programs)):
            saver.put_writes(config, writes, task, path)

    def get(self) -> None:
        config = self.random.choice([self.place(), *self.stored[-10:]])
        self.compare(lambda saver: saver.get_tuple(config))

    def list(self) -> None:
        config = self.random.choice([self.place(), *self.stored[-3:]])
        before = self.random.choice([None, *self.stored[-10:]])
        limit = self.random.choice([None, 0, 1, 3])
        source = self.random.choice([None, {"source": "loop"}, {"source": "loop", "step": 3}])
        self.compare(lambda saver: list(saver.list(config, filter=source, before=before, limit=limit)))

    def delete(self) -> None:
        thread = self.random.choice(self.threads)
        self.compare(lambda saver: saver.delete_thread(thread))
        self.stored = [c for c in self.stored if c["configurable"]["thread_id"] != thread]


def plain(value: Any) -> Any:
    """A result without what savers may say differently: other keys of the config."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, CheckpointTuple):
        keys = ("thread_id", "checkpoint_ns", "checkpoint_id")
        config = {k: value.config["configurable"].get(k) for k in keys}
        return (config, value.checkpoint, value.metadata, value.parent_config, value.pending_writes)
    return value


@pytest.mark.parametrize("seed", range(6))
def test_random_calls_do_the_same_as_on_the_saver_of_langgraph(server: DevServer, seed: int) -> None:
    calls = RandomCalls(server, seed)
    for _ in range(200):
        weights = [30, 30, 20, 19, 1]
        (call,) = calls.random.choices([calls.put, calls.put_writes, calls.get, calls.list, calls.delete], weights)
        call()
