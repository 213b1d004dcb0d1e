"""Callback handlers of LangChain are told what LangGraph tells them, in the same order, with the same parents."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest

from graphd.dev import DevServer

from .callback_programs import ON_LOOPS, PROGRAMS, Library

pytest.importorskip("langgraph")
callbacks = pytest.importorskip("langchain_core.callbacks")

_COUNTER = itertools.count()
_ID = re.compile(r":[0-9a-f-]{32,36}")
# Programs with nodes that run side by side: their events come in any order.
UNORDERED = {"decisions_beside_edges", "joins", "sends", "wrong_update"}


class Recorder(callbacks.BaseCallbackHandler):  # type: ignore[misc, name-defined]
    """Keeps what it is told, with names in the place of ids."""

    run_inline = True

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._names: dict[Any, str] = {}

    def _begin(self, kind: str, name: str, about: dict[str, Any], given: Any) -> None:
        parent = self._names.get(about["parent_run_id"], "")
        self._names[about["run_id"]] = f"{parent}/{name}"
        node = about["metadata"].get("langgraph_node", "")
        left_out = LIBRARIES | (UNKNOWN if node in GRAPHS else HANDLERS if node.startswith("__error") else set())
        metadata = {k: v for k, v in about["metadata"].items() if k not in left_out}
        if metadata.get("langgraph_path", [""])[0] == "__pregel_push":
            metadata["langgraph_path"] = "pushed"  # the server does not say by which of the sends
        self._keep(f"{kind}_start", about, sorted(set(about["tags"])), metadata, given)

    def _keep(self, kind: str, about: dict[str, Any], *shown: Any) -> None:
        self.events.append([kind, self._names[about["run_id"]], *map(without_ids, shown)])

    def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
        self._begin("chain", about["name"], about, inputs)

    def on_chain_end(self, outputs: Any, **about: Any) -> None:
        self._keep("chain_end", about, outputs)

    def on_chain_error(self, error: BaseException, **about: Any) -> None:
        kinds = [kind.__name__ for kind in type(error).__mro__]
        self._keep("chain_error", about, kinds[1] if kinds[0] == "RefusedUpdateError" else kinds[0])

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        self._begin("model", "model", about, len(messages[0]))

    def on_tool_start(self, serialized: Any, input_str: str, **about: Any) -> None:
        self._begin("tool", serialized["name"], about, about["inputs"])

    def on_tool_end(self, output: Any, **about: Any) -> None:
        self._keep("tool_end", about, output)

    def on_tool_error(self, error: BaseException, **about: Any) -> None:
        self._keep("tool_error", about, type(error).__name__)

    def on_llm_new_token(self, token: str, **about: Any) -> None:
        self._keep("token", about, token)

    def on_llm_end(self, response: Any, **about: Any) -> None:
        self._keep("model_end", about, response.generations[0][0].text)


# What the metadata of one library has, and that of the other has not.
LIBRARIES = {"ls_integration", "lc_versions"}
# What the server does not say of a graph that is a node.
UNKNOWN = {"langgraph_triggers", "langgraph_path"}
GRAPHS = {"inner", "first", "second", "deep"}
# An error handler is a task of its own, and in LangGraph a part of that of its node.
HANDLERS = {"langgraph_path", "langgraph_checkpoint_ns"}


def without_ids(value: Any) -> Any:
    """A value with nothing in it that is another one in each run."""
    if isinstance(value, dict):
        return {key: without_ids(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_ids(one) for one in value]
    if isinstance(value, str):
        return _ID.sub("", value)
    if type(value).__name__ in ("Command", "Send"):
        return type(value).__name__
    if hasattr(value, "content"):
        return [type(value).__name__, value.content]
    return value


def invoke(graph: Any, given: Any, config: Any) -> None:
    graph.invoke(given, config)


def stream(graph: Any, given: Any, config: Any) -> None:
    list(graph.stream(given, config))


def ainvoke(graph: Any, given: Any, config: Any) -> None:
    asyncio.run(graph.ainvoke(given, config))


async def consume(items: Any) -> None:
    async for _ in items:
        pass


def astream(graph: Any, given: Any, config: Any) -> None:
    asyncio.run(consume(graph.astream(given, config)))


WAYS: dict[str, Callable[[Any, Any, Any], None]] = {
    "invoke": invoke,
    "stream": stream,
    "ainvoke": ainvoke,
    "astream": astream,
}


def record(root: str, server: str, name: str, way: str) -> list[Any]:
    """The events of a program on one library."""
    recorder, thread = Recorder(), f"callbacks-{next(_COUNTER)}"

    def call(graph: Any, given: Any) -> None:
        config = {
            "configurable": {"thread_id": thread},
            "callbacks": [recorder],
            "tags": ["tagged"],
            "metadata": {"user": "ann", "number": 1},
        }
        with contextlib.suppress(Exception):
            WAYS[way](graph, given, config)

    with contextlib.closing(Library(root, server)) as lib:
        PROGRAMS[name](lib, call)
    return [without_thread(event, thread) for event in recorder.events]


def without_thread(event: Any, thread: str) -> Any:
    if isinstance(event, dict):
        return {key: without_thread(one, thread) for key, one in event.items()}
    if isinstance(event, list):
        return [without_thread(one, thread) for one in event]
    return "the thread" if event == thread else event


def ordered(name: str, events: list[Any]) -> list[Any]:
    return sorted(events, key=repr) if name in UNORDERED else events


COMPARED = [(name, way) for name in PROGRAMS for way in WAYS if not way.startswith("a") or name in ON_LOOPS]


@pytest.mark.parametrize(("name", "way"), COMPARED)
def test_events_are_those_of_langgraph(server: DevServer, name: str, way: str) -> None:
    here = record("graphd", server.address, name, way)
    there = record("langgraph", server.address, name, way)
    assert [event[:2] for event in ordered(name, here)] == [event[:2] for event in ordered(name, there)]
    assert ordered(name, here) == ordered(name, there)
