"""Savers whose calls of the server are counted, and what tests store with them.

Only for programs that have langgraph-checkpoint.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint

from graphd.checkpoint.langgraph import GraphdSaver
from graphd.dev import DevServer


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
