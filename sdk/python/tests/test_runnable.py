"""A compiled graph is a Runnable of LangChain, and does without LangChain what needs nothing of it."""

from __future__ import annotations

import asyncio
import importlib
import operator
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from graphd.dev import DevServer


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]


def double(state: State) -> dict[str, Any]:
    if state["n"] < 0:
        raise ValueError(f"{state['n']} is less than nothing")
    return {"n": state["n"] * 2, "log": [f"doubled {state['n']}"]}


BUILT: list[Any] = []


@pytest.fixture(autouse=True)
def end_workers() -> Iterator[None]:
    """Ends the workers of a test before those of the next one have the same graph."""
    yield
    while BUILT:
        BUILT.pop().detach()


def build(library: str, server: DevServer | None = None, name: str = "Doubler") -> Any:
    graph = build_graph(library, server, name)
    if library == "graphd":
        BUILT.append(graph)
    return graph


def build_graph(library: str, server: DevServer | None, name: str) -> Any:
    graphs = importlib.import_module(f"{library}.graph")
    builder = graphs.StateGraph(State).add_node("double", double).add_edge(graphs.START, "double")
    if server is None:
        return builder.compile(name=name)
    saver = importlib.import_module(f"{library}.checkpoint.memory").InMemorySaver
    return builder.compile(saver(server=server.address), name=name)


def errors_as_text(results: list[Any]) -> list[Any]:
    return [repr(result) if isinstance(result, Exception) else result for result in results]


async def collect(items: Any) -> list[Any]:
    return [item async for item in items]


async def pieces(*items: Any) -> Any:
    for item in items:
        yield item


INPUTS: list[Any] = [{"n": 1}, {"n": -1}, {"n": 3}]
USES: dict[str, Callable[[Any], Any]] = {
    "batch": lambda g: g.batch(INPUTS[::2]),
    "batch of none": lambda g: [g.batch([]), list(g.batch_as_completed([]))],
    "batch with configs": lambda g: g.batch(INPUTS[::2], [{"tags": ["a"]}, {"max_concurrency": 1}]),
    "batch with arguments": lambda g: g.batch(INPUTS[::2], {"max_concurrency": 1}, output_keys="n"),
    "batch with exceptions": lambda g: errors_as_text(g.batch(INPUTS, return_exceptions=True)),
    "batch as completed": lambda g: sorted(g.batch_as_completed(INPUTS[::2])),
    "abatch": lambda g: asyncio.run(g.abatch(INPUTS[::2], {"max_concurrency": 1})),
    "abatch of none": lambda g: asyncio.run(g.abatch([])),
    "abatch with exceptions": lambda g: errors_as_text(asyncio.run(g.abatch(INPUTS, return_exceptions=True))),
    "abatch as completed": lambda g: sorted(asyncio.run(collect(g.abatch_as_completed(INPUTS[::2])))),
    "transform": lambda g: list(g.transform(iter([{"n": 1}, {"n": 2}]))),
    "atransform": lambda g: asyncio.run(collect(g.atransform(pieces({"n": 1}, {"n": 2})))),
    "transform of nothing": lambda g: list(g.transform(iter([]))),
    "names": lambda g: [g.get_name(), g.get_name("Input"), g.get_name("Out", name="lower")],
}
COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "behind": lambda g: (g | (lambda state: state["n"])).invoke({"n": 1}),
    "in front": lambda g: ((lambda n: {"n": n}) | g).invoke(2),
    "of a dict": lambda g: ({"n": lambda n: n} | g).invoke(2),
    "pipe": lambda g: g.pipe(g, lambda state: state["log"]).invoke({"n": 1}),
    "bind": lambda g: g.bind(output_keys=["n"]).invoke({"n": 1}),
    "config": lambda g: g.with_config(tags=["a"]).with_config({"metadata": {"b": 1}}).config["tags"],
    "retry": lambda g: g.with_retry(stop_after_attempt=1).invoke({"n": 1}),
    "fallbacks": lambda g: (
        (g | (lambda state: 1 // 0)).with_fallbacks([g | (lambda state: "fallback")]).invoke({"n": 1})
    ),
    "own fallbacks": lambda g: g.with_fallbacks([g.with_config(run_name="other")]).invoke({"n": 1}),
    "pick": lambda g: g.pick("n").invoke({"n": 1}),
    "assign": lambda g: g.assign(half=lambda state: state["n"] / 2).invoke({"n": 1}),
    "map": lambda g: g.map().invoke(INPUTS[::2]),
    "tool": lambda g: g.as_tool(name="doubler", description="Doubles.", arg_types={"n": int}).invoke({"n": 4}),
    "tool name": lambda g: g.as_tool(description="Doubles.", arg_types={"n": int}).name,
    "stream of a chain": lambda g: list((g | (lambda update: update["double"]["n"])).stream({"n": 1})),
    "async chain": lambda g: asyncio.run((g | (lambda state: state["n"])).ainvoke({"n": 1})),
}


@pytest.mark.filterwarnings("ignore:This API is in beta")
@pytest.mark.parametrize("use", [*USES, *COMPOSITIONS])
def test_it_does_what_langgraph_does(use: str) -> None:
    pytest.importorskip("langgraph")
    call = {**USES, **COMPOSITIONS}[use]
    assert call(build("graphd")) == call(build("langgraph"))


@pytest.mark.parametrize("use", USES)
def test_it_needs_no_langchain(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class is still the one without Runnable, because nothing asked for it."""
    expected = USES[use](build("graphd"))
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.base", None)
    graph = build("graphd")
    assert USES[use](graph) == expected
    assert not any(kind.__module__.startswith("langchain") for kind in type(graph).__mro__)


def test_lists_of_configs_have_the_length_of_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.base", None)
    with pytest.raises(ValueError, match="config: a list must have one config for each of the 2 inputs; got 1"):
        build("graphd").batch(INPUTS[:2], [{}])
    with pytest.raises(ValueError, match="less than nothing"):
        build("graphd").batch(INPUTS)
    with pytest.raises(ValueError, match="less than nothing"):
        asyncio.run(build("graphd").abatch(INPUTS))


def test_a_run_id_is_for_one_run(monkeypatch: pytest.MonkeyPatch, server: DevServer) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.base", None)
    graph = build("graphd")
    with pytest.warns(RuntimeWarning, match="run_id"):
        assert graph.batch(INPUTS[::2], {"run_id": "one"}) == [graph.invoke(each) for each in INPUTS[::2]]


def test_what_only_runnables_have_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = importlib.import_module("graphd.errors")
    monkeypatch.setitem(sys.modules, "langchain_core.runnables.base", None)
    graph = build("graphd")
    with pytest.raises(errors.MissingPackageError, match=r"with_retry\(\) needs langchain-core: pip install") as caught:
        graph.with_retry()
    assert (caught.value.package, caught.value.needed_by) == ("langchain-core", "with_retry()")
    for compose in (lambda: graph | (lambda state: state), lambda: (lambda state: state) | graph):
        with pytest.raises(errors.MissingPackageError, match="pip install langchain-core"):
            compose()


def test_what_this_langchain_has_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runnable = pytest.importorskip("langchain_core.runnables").Runnable
    monkeypatch.delattr(runnable, "stream_events")
    composable = importlib.import_module("graphd.compiled.composable_graph").ComposableGraph
    with pytest.raises(NotImplementedError, match=r"stream_events\(\) needs a newer langchain-core"):
        composable.stream_events(build("graphd"), {"n": 1})


LATE = """
import sys
import graphd
from graphd.graph import START, StateGraph
from typing import TypedDict

class State(TypedDict):
    n: int

def compiled():
    return StateGraph(State).add_node("one", lambda state: {}).add_edge(START, "one").compile()

early, piped = compiled(), compiled()
assert early.invoke({"n": 1}) == {"n": 1}
assert "langchain_core" not in sys.modules and "langgraph" not in sys.modules
from langchain_core.runnables import Runnable
for graph in (early, early.with_config(tags=["a"]), compiled()):
    assert isinstance(graph, Runnable) and isinstance(graph, type(piped)) and not isinstance(graph, dict)
assert (piped | (lambda state: state["n"])).invoke({"n": 2}) == 2
assert issubclass(type(early), Runnable) and early.__class__ is type(early) is piped.__class__
print("fine")
"""


def test_langchain_may_be_imported_later(server: DevServer) -> None:
    pytest.importorskip("langchain_core")
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_batches_have_no_limit_of_their_own(server: DevServer) -> None:
    """LangChain gives each config a recursion_limit of 25, and LangGraph goes by it."""
    pytest.importorskip("langchain_core")
    graphs = importlib.import_module("graphd.graph")
    builder = graphs.StateGraph(State).add_node("count", lambda state: {"n": state["n"] + 1})
    builder.add_conditional_edges("count", lambda state: "count" if state["n"] < 30 else graphs.END)
    graph = builder.add_edge(graphs.START, "count").compile()
    assert [result["n"] for result in graph.batch([{"n": 0}, {"n": 1}])] == [30, 30]
    assert isinstance(graph, importlib.import_module("langchain_core.runnables").Runnable)
    assert [result["n"] for result in graph.batch([{"n": 0}, {"n": 1}])] == [30, 30]


def test_threads_are_kept_in_chains(server: DevServer) -> None:
    pytest.importorskip("langchain_core")
    graph, config = build("graphd", server, "chained"), {"configurable": {"thread_id": "chained-1"}}
    chain = (lambda n: {"n": n}) | graph | (lambda state: state["log"])
    assert chain.invoke(1, config) == ["doubled 1"]
    assert chain.invoke(5, config) == ["doubled 1", "doubled 5"]
    assert graph.get_state(config).values["n"] == 10
