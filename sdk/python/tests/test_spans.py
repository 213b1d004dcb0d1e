"""Traces of OpenTelemetry go from a program to the server, and from there to the code of nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import grpc
import pytest

from graphd import AsyncClient, Client
from graphd.dev import DevServer, dev
from graphd.errors import GraphdError
from graphd.graph import END, START, StateGraph
from graphd.spans import read_current, trace_task
from tests.graph_documents import REFUND

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
exporters = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

CARRIER = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.fixture(scope="module")
def provided() -> Any:
    """What the spans of this process go to: OpenTelemetry takes one provider for a process."""
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(exporters.SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(provided: Any) -> Iterator[Any]:
    """The spans of one test."""
    provided.clear()
    yield provided
    provided.clear()


def named(spans: Any, name: str) -> Any:
    """The only span with a name."""
    [found] = [span for span in spans.get_finished_spans() if span.name == name]
    return found


class State(TypedDict, total=False):
    count: int


def test_a_task_continues_the_trace_of_its_assignment(spans: Any) -> None:
    with trace_task("run count", CARRIER, {"graphd.node": "count"}) as span:
        with trace.get_tracer("test").start_as_current_span("own"):
            pass
        span.note_failure("ValueError")
    outer, own = named(spans, "run count"), named(spans, "own")
    assert f"{outer.context.trace_id:032x}" == CARRIER["traceparent"].split("-")[1]
    assert f"{outer.parent.span_id:016x}" == CARRIER["traceparent"].split("-")[2]
    assert own.parent.span_id == outer.context.span_id
    assert outer.attributes["error.type"] == "ValueError"
    assert outer.status.status_code is trace.StatusCode.ERROR


def test_without_opentelemetry_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert read_current() == []
    with trace_task("run count", CARRIER, {}) as span:
        span.note_failure("ValueError")


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_code_of_a_node_is_in_a_span(server: DevServer, spans: Any, is_async: bool) -> None:
    seen = []

    def plain(state: State) -> State:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return {"count": 1}

    async def on_loop(state: State) -> State:
        return plain(state)

    builder = StateGraph(State)
    builder.add_node("count", on_loop if is_async else plain)
    builder.add_edge(START, "count")
    builder.add_edge("count", END)
    graph = builder.compile(server=server.address, name=f"spans-{is_async}")
    config: Any = {"configurable": {"thread_id": f"spans-{is_async}"}}
    with trace.get_tracer("test").start_as_current_span("call"):
        assert await graph.ainvoke({"count": 0}, config) == {"count": 1}
    node = named(spans, "run count")
    assert seen == [node.context.span_id]
    assert node.attributes["graphd.node"] == "count"
    assert node.attributes["graphd.thread"] == f"spans-{is_async}"


def test_callbacks_of_langchain_are_inside_the_span(server: DevServer, spans: Any) -> None:
    callbacks = pytest.importorskip("langchain_core.callbacks")
    runnables = pytest.importorskip("langchain_core.runnables")
    seen = []

    class Handler(callbacks.BaseCallbackHandler):  # type: ignore[misc, name-defined]
        def on_chain_start(self, *args: Any, **named: Any) -> None:
            seen.append(trace.get_current_span().get_span_context().span_id)

    def node(state: State) -> Any:
        return runnables.RunnableLambda(lambda given: {"count": 1}).invoke(state, {"callbacks": [Handler()]})

    builder = StateGraph(State)
    builder.add_node("count", node)
    builder.add_edge(START, "count")
    builder.add_edge("count", END)
    graph = builder.compile(server=server.address, name="spans-langchain")
    assert graph.invoke({"count": 0}, {"configurable": {"thread_id": "spans-langchain"}}) == {"count": 1}
    assert seen == [named(spans, "run count").context.span_id]


def test_a_trace_goes_through_the_server(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"
    )  # where nothing takes the spans of the server
    inner = StateGraph(State)
    inner.add_node("inner", lambda state: {"count": 1})
    inner.add_edge(START, "inner")
    inner.add_edge("inner", END)
    called = inner.compile(name="spans-inner")
    builder = StateGraph(State)
    builder.add_node("count", lambda state: called.invoke(state))
    builder.add_edge(START, "count")
    builder.add_edge("count", END)
    with dev() as server:
        graph = builder.compile(server=server.address, name="spans")
        with trace.get_tracer("test").start_as_current_span("call") as call:
            assert graph.invoke({"count": 0}, {"configurable": {"thread_id": "t"}}) == {"count": 1}
    node, below = named(spans, "run count"), named(spans, "run inner")
    assert node.context.trace_id == below.context.trace_id == call.get_span_context().trace_id
    assert below.parent.span_id != node.parent.span_id, "a called graph has supersteps of its own"
    assert node.parent.is_remote
    assert node.parent.span_id != call.get_span_context().span_id, "the spans of the server are between the two"


class Recorder(grpc.GenericRpcHandler):
    """A server that notes the metadata of its calls, and answers none."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def service(self, handler_call_details: Any) -> None:
        self.calls.append(dict(handler_call_details.invocation_metadata))


@pytest.fixture
def recorder() -> Iterator[tuple[str, Recorder]]:
    with ThreadPoolExecutor(2) as pool:
        noted, server = Recorder(), grpc.server(pool)
        server.add_generic_rpc_handlers([noted])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield f"127.0.0.1:{port}", noted
        server.stop(None)


def test_calls_have_the_trace_of_their_caller(spans: Any, recorder: tuple[str, Recorder]) -> None:
    address, noted = recorder
    with trace.get_tracer("test").start_as_current_span("call") as span, pytest.raises(GraphdError):
        Client(address).graphs.put(REFUND)
    context = span.get_span_context()
    assert (
        noted.calls[0]["traceparent"]
        == f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    )


async def test_so_have_calls_of_loops(spans: Any, recorder: tuple[str, Recorder]) -> None:
    address, noted = recorder
    with trace.get_tracer("test").start_as_current_span("call") as span, pytest.raises(GraphdError):
        await AsyncClient(address).graphs.put(REFUND)
    assert noted.calls[0]["traceparent"].split("-")[1] == f"{span.get_span_context().trace_id:032x}"
