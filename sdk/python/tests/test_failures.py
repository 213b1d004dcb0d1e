"""Exceptions that are hard to tell: a run must end whatever a node raises."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from graphd import START, InMemorySaver, StateGraph
from graphd._gen.v1 import payload_pb2
from graphd.dev import DevServer
from graphd.errors import NodeError, NodeTimeoutError, RemoteNodeError
from graphd.runtime import exception_text
from graphd.runtime.failed_node import restore_error
from graphd.types import CachePolicy, RetryPolicy


class State(TypedDict):
    log: Annotated[list[str], operator.add]


class Speechless(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")


def hard_to_tell() -> dict[str, BaseException]:
    return {
        "no text": ValueError("the file \udcff.txt is missing"),
        "does not speak": Speechless(),
        "long": ValueError("é" * (5 << 20)),
        "of a long name": type("N" * 300, (ValueError,), {})("x"),
        "no Exception": SystemExit(3),
    }


def ran(server: DevServer, name: str, schema: Any, node: Any, **options: Any) -> BaseException:
    """What a graph of one node raises; it gets a minute for that."""
    builder = StateGraph(schema).add_node("node", node, **options).add_edge(START, "node")
    graph = builder.compile(
        InMemorySaver(server=server.address), name=name.replace(" ", "-"), cache=options.get("cache_policy") and Torn()
    )

    async def run() -> None:
        await asyncio.wait_for(graph.ainvoke({"log": []}, {"configurable": {"thread_id": name.replace(" ", "-")}}), 60)

    try:
        with pytest.raises(BaseException) as raised:
            asyncio.run(run())
    finally:
        graph.detach()
    return raised.value


def raising(error: BaseException, *, is_async: bool = False) -> Callable[[State], Any]:
    def node(state: State) -> dict[str, Any]:
        raise error

    async def anode(state: State) -> dict[str, Any]:
        raise error

    return anode if is_async else node


@pytest.mark.parametrize("what", [w for w in hard_to_tell() if w != "no Exception"])
@pytest.mark.parametrize("is_async", [False, True])
def test_the_caller_gets_the_very_exception(server: DevServer, what: str, is_async: bool) -> None:
    error = hard_to_tell()[what]
    assert ran(server, f"hard {what} {is_async}", State, raising(error, is_async=is_async)) is error


@pytest.mark.parametrize("what", list(hard_to_tell()))
def test_reducers_may_raise_what_they_like(server: DevServer, what: str) -> None:
    def reducer(a: list[str], b: list[str]) -> list[str]:
        raise hard_to_tell()[what]

    schema = TypedDict("Reduced", {"log": Annotated[list[str], reducer]})  # noqa: UP013
    error = ran(server, f"reduced {what}", schema, lambda state: {"log": ["x"]})
    assert not isinstance(error, TimeoutError)
    assert "reducer log of channel log" in str(error)


def test_what_retry_on_raises_takes_the_place_of_the_error(server: DevServer) -> None:
    def wanted(error: Exception) -> bool:
        raise broken

    broken = RuntimeError("retry_on is broken")
    node = raising(ValueError("x"))
    assert ran(server, "retry_on", State, node, retry_policy=RetryPolicy(retry_on=wanted)) is broken


class Torn:
    """A cache that takes nothing."""

    def read(self, key: str) -> bytes | None:
        return None

    def write(self, key: str, value: bytes, ttl: float | None) -> None:
        raise torn


torn = OSError("the disk is full")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cache_that_fails_fails_the_node(server: DevServer, is_async: bool) -> None:
    def node(state: State) -> dict[str, Any]:
        return {"log": ["x"]}

    async def anode(state: State) -> dict[str, Any]:
        return {"log": ["x"]}

    policy = CachePolicy()
    assert ran(server, f"torn {is_async}", State, anode if is_async else node, cache_policy=policy) is torn


def test_texts_are_cut_as_the_server_cuts_them() -> None:
    text = exception_text.text_of(ValueError("é" * 4096))
    assert text == "é" * 2046 + "…"
    assert len(text.encode()) <= 4096
    assert exception_text.text_of(ValueError("é" * 2048)) == "é" * 2048
    assert exception_text.text_of(ValueError("a\udcffb")) == "a\\udcffb"
    assert "LookupError" in exception_text.text_of(Speechless())
    assert exception_text.text_of(RemoteNodeError("x", type="T", node="n", reason="r")) == str(
        RemoteNodeError("x", type="T", node="n", reason="r")
    )


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("key"), KeyError(7), ZeroDivisionError("x/0")])
def test_a_builtin_exception_of_another_process_is_itself(error: Exception) -> None:
    failure = payload_pb2.Failure(type=exception_text.kind_of(error), message=exception_text.text_of(error))
    restored = restore_error(failure)
    assert (type(restored), restored.args) == (type(error), error.args)


@pytest.mark.parametrize("kind", ["Boom", "SystemExit", "UnicodeDecodeError"])
def test_any_other_exception_of_another_process_keeps_its_name(kind: str) -> None:
    restored = restore_error(payload_pb2.Failure(type=kind, message="no", node="n"))
    assert isinstance(restored, RemoteNodeError)
    assert (restored.type, restored.node, str(restored)) == (kind, "n", "no")
    assert exception_text.kind_of(restored) == kind, "when it fails the node that called the graph"


def test_a_handler_gets_the_error_of_a_timeout(server: DevServer) -> None:
    caught: list[BaseException] = []

    async def wait(state: State) -> None:
        await asyncio.Event().wait()

    def handle(state: State, error: NodeError) -> State:
        caught.append(error.error)
        return {"log": [error.node]}

    builder = StateGraph(State).add_node("wait", wait, timeout=0.05, error_handler=handle).add_edge(START, "wait")
    graph = builder.compile(InMemorySaver(server=server.address), name="handled-timeout")
    assert graph.invoke({"log": []}, {"configurable": {"thread_id": "handled-timeout"}}) == {"log": ["wait"]}
    assert [type(error) for error in caught] == [NodeTimeoutError]
    assert caught[0].kind == "run"
