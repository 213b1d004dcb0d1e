"""LangGraph runs the graph, and graphd keeps its threads."""

from __future__ import annotations

import itertools
import operator
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import graphd.graph
import graphd.types
from graphd import interrupt as interrupt_of_graphd
from graphd.dev import DevServer, dev

pytest.importorskip("langgraph.checkpoint.base")
conformance = pytest.importorskip("langgraph.checkpoint.conformance")

from langgraph.channels import DeltaChannel  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command, Send, interrupt  # noqa: E402

from graphd.checkpoint.langgraph import GraphdSaver  # noqa: E402


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A server on each store."""
    path = tmp_path_factory.mktemp("savers") / "threads.db"
    with dev(store="memory" if request.param == "memory" else f"sqlite:{path}") as started:
        yield started


async def test_it_passes_the_suite_of_langgraph(store: DevServer) -> None:
    @conformance.checkpointer_test(name="GraphdSaver")
    async def register() -> AsyncIterator[GraphdSaver]:
        yield GraphdSaver(store.address)

    report = await conformance.validate(register)
    results = report.results
    assert {name: result.failures for name, result in results.items()} == {name: [] for name in results}
    assert set(results) == {
        "put",
        "put_writes",
        "get_tuple",
        "list",
        "delete_thread",
        "delete_for_runs",
        "copy_thread",
        "prune",
    }
    assert report.passed_all()


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    verdict: str


class Item(TypedDict):
    name: str


def build(saver: Any) -> Any:
    """Parallel nodes, sends, a subgraph that asks, and a node that asks twice."""

    def check(item: Item) -> dict[str, Any]:
        return {"log": [f"checked {item['name']}"]}

    def ask_inside(state: State) -> dict[str, Any]:
        return {"log": [f"inside: {interrupt('inside?')}"]}

    def decide(state: State) -> dict[str, Any]:
        first, second = interrupt({"seen": len(state["log"])}), interrupt("sure?")
        return {"verdict": f"{first}, {second}", "log": ["decided"]}

    inner = StateGraph(State)
    inner.add_node("ask_inside", ask_inside)
    inner.add_edge(START, "ask_inside")
    builder = StateGraph(State)
    builder.add_node("plan", lambda state: {"log": ["planned"]})
    builder.add_node("check", check)
    builder.add_node("inner", inner.compile())
    builder.add_node("decide", decide)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("check", {"name": n}) for n in "ab"], ["check"])
    builder.add_edge("check", "inner")
    builder.add_edge("inner", "decide")
    builder.add_edge("decide", END)
    return builder.compile(checkpointer=saver)


CONFIG: Any = {"configurable": {"thread_id": "t 1"}}


def tell_history(graph: Any) -> list[Any]:
    """What a person sees of a thread, without ids and times."""
    told = []
    for state in graph.get_state_history(CONFIG):
        tasks = [(t.name, t.error, t.result, [i.value for i in t.interrupts]) for t in state.tasks]
        metadata = {k: v for k, v in state.metadata.items() if k in ("source", "step")}
        told.append((state.values, state.next, tasks, metadata, state.parent_config is None))
    return told


STEPS: list[Any] = [
    lambda graph: graph.invoke({"log": ["in"]}, CONFIG),
    lambda graph: graph.get_state(CONFIG, subgraphs=True).tasks[0].state.next,
    lambda graph: graph.invoke(Command(resume="yes"), CONFIG),
    lambda graph: graph.invoke(Command(resume="first"), CONFIG),
    lambda graph: list(graph.stream(Command(resume="second"), CONFIG)),
    lambda graph: graph.update_state(CONFIG, {"log": ["edited"]}, as_node="inner") and None,
    lambda graph: graph.invoke(None, CONFIG),
    lambda graph: graph.invoke(None, find_state(graph, ("check", "check")).config),
    lambda graph: graph.invoke(Command(resume="again"), CONFIG),
    lambda graph: graph.invoke(None, find_state(graph, ("decide",)).config),
    tell_history,
]


def find_state(graph: Any, due: tuple[str, ...]) -> Any:
    return next(state for state in graph.get_state_history(CONFIG) if state.next == due)


def plain(value: Any) -> Any:
    """What a step returned, without ids."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.value if type(value).__name__ == "Interrupt" else value


def test_a_thread_goes_on_as_with_the_saver_of_langgraph(store: DevServer) -> None:
    """Each step is another program: it has a graph and a saver of its own."""
    original = build(InMemorySaver())
    expected = [plain(step(original)) for step in STEPS]
    assert expected[4] == [{"decide": {"log": ["decided"], "verdict": "first, second"}}]
    assert [plain(step(build(GraphdSaver(store.address)))) for step in STEPS] == expected


def test_a_question_outlives_its_server(tmp_path: Path) -> None:
    path = f"sqlite:{tmp_path / 'threads.db'}"
    with dev(store=path) as first:
        asked = build(GraphdSaver(first.address)).invoke({"log": []}, CONFIG)
    assert [i.value for i in asked["__interrupt__"]] == ["inside?"]
    with dev(store=path) as second:
        graph = build(GraphdSaver(second.address))
        assert graph.get_state(CONFIG).next == ("inner",)
        assert [i.value for i in graph.invoke(Command(resume="yes"), CONFIG)["__interrupt__"]] == [{"seen": 7}]
        graph.invoke(Command(resume="first"), CONFIG)
        assert graph.invoke(Command(resume="second"), CONFIG)["verdict"] == "first, second"


async def test_async_programs(store: DevServer) -> None:
    """With breakpoints: LangGraph has no interrupt() for async programs on Python 3.10."""

    async def count(state: State) -> dict[str, Any]:
        return {"log": [f"saw {len(state['log'])}"]}

    def compile_with(saver: Any) -> Any:
        builder = StateGraph(State)
        builder.add_sequence([("first", count), ("second", count)])
        builder.add_edge(START, "first")
        return builder.compile(checkpointer=saver, interrupt_before=["second"])

    config: Any = {"configurable": {"thread_id": "async"}}
    told = []
    for saver in (InMemorySaver(), GraphdSaver(store.address)):
        graph = compile_with(saver)
        await graph.ainvoke({"log": ["in"]}, config)
        await graph.aupdate_state(config, {"log": ["edited"]})
        ended = await graph.ainvoke(None, config)
        history = [state async for state in graph.aget_state_history(config)]
        forked = await graph.ainvoke(None, history[2].config)
        newest = await graph.aget_state(config)
        told.append((ended, forked, newest.next, [(s.values, s.next, s.metadata["step"]) for s in history]))
    assert told[0] == told[1]
    await saver.acopy_thread("async", "async-copy")
    await saver.aprune(["async-copy"])
    await saver.adelete_thread("async")
    assert (await graph.aget_state(config)).values == {}
    copy: Any = {"configurable": {"thread_id": "async-copy"}}
    assert [state.values async for state in graph.aget_state_history(copy)] == [newest.values]


def join_writes(old: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*old, *itertools.chain(*writes)]


def test_channels_whose_checkpoints_have_no_value(store: DevServer) -> None:
    """DeltaChannel: the value is made of the writes of earlier checkpoints."""

    class Deltas(TypedDict):
        log: Annotated[list[str], DeltaChannel(join_writes, snapshot_frequency=4)]

    def compile_with(saver: Any) -> Any:
        builder = StateGraph(Deltas)
        builder.add_node("one", lambda state: {"log": ["one"]})
        builder.add_node("two", lambda state: {"log": [f"two saw {len(state['log'])}"]})
        builder.add_edge(START, "one")
        builder.add_edge("one", "two")
        return builder.compile(checkpointer=saver)

    config: Any = {"configurable": {"thread_id": "deltas"}}
    saver = GraphdSaver(store.address)
    told = []
    for graph in (compile_with(InMemorySaver()), compile_with(saver)):
        for turn in "abc":
            graph.invoke({"log": [turn]}, config)
        told.append([state.values for state in graph.get_state_history(config)])
    assert told[0] == told[1]
    length = len(told[1])
    newest = next(iter(saver.list(config, limit=1)))
    assert "log" not in newest.checkpoint["channel_values"], "its value is in an ancestor"
    saver.prune(["deltas"])
    pruned = compile_with(saver)
    assert pruned.get_state(config).values == told[1][0]
    assert 1 < len(list(pruned.get_state_history(config))) < length
    assert pruned.invoke({"log": ["d"]}, config)["log"][-1] == "two saw 11"


def test_a_saver_names_the_server_for_graphd(store: DevServer) -> None:
    """And no other saver of graphd is one of LangGraph."""
    native = graphd.graph.StateGraph(State)
    native.add_node("plan", lambda state: {"log": [interrupt_of_graphd("go?")]})
    native.add_edge(START, "plan")
    graph = native.compile(GraphdSaver(store.address), name="named-by-saver")
    config: Any = {"configurable": {"thread_id": "native"}}
    graph.invoke({"log": []}, config)
    other = native.compile(server=store.address, name="named-by-saver")
    assert other.invoke(graphd.types.Command(resume="yes"), config)["log"] == ["yes"]
    with pytest.raises(TypeError, match="Invalid checkpointer"):
        build(graphd.InMemorySaver(server=store.address))
