"""Which handlers are told: of the config, of with_config, of the code around; and where nodes run elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphd.dev import DevServer
from graphd.errors import GraphInterrupt, MissingPackageError
from graphd.graph import START, StateGraph
from graphd.types import interrupt

from .callback_programs import Library, State, one, raises, two

callbacks = pytest.importorskip("langchain_core.callbacks")
runnables = pytest.importorskip("langchain_core.runnables")


class Names(callbacks.BaseCallbackHandler):  # type: ignore[misc, name-defined]
    """Keeps the names of what begins, and the errors."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.errors: list[BaseException] = []
        self.ends = 0

    def on_chain_start(self, serialized: Any, inputs: Any, *, name: str, **about: Any) -> None:
        self.names.append(name)

    def on_chain_end(self, outputs: Any, **about: Any) -> None:
        self.ends += 1

    def on_chain_error(self, error: BaseException, **about: Any) -> None:
        self.errors.append(error)


@pytest.fixture
def lib(server: DevServer) -> Iterator[Library]:
    with contextlib.closing(Library("graphd", server.address)) as library:
        yield library


def test_all_handlers_are_told(lib: Library) -> None:
    names = [Names() for _ in range(3)]
    graph = lib.graph(one, edges=">one").compile(name="All").with_config(callbacks=[names[0]])
    graph.with_config({"callbacks": [names[1]]}).invoke({"n": 1}, {"callbacks": [names[2], names[0]]})
    graph.invoke({"n": 1}, {"callbacks": callbacks.CallbackManager([names[1]], [names[1]])})
    assert [handler.names for handler in names] == [["All", "one"] * 2, ["All", "one"] * 2, ["All", "one"]]


@pytest.mark.parametrize("outer", [[], [Names()]])
def test_handlers_of_a_graph_that_is_a_node_are_told_of_it(lib: Library, outer: list[Any]) -> None:
    pytest.importorskip("langgraph")
    told = []
    for library in (lib, Library("langgraph", "")):
        handler = Names()
        inner = library.graph(one, edges=">one").compile(name="bound inside").with_config(callbacks=[handler])
        middle = library.graph(edges=">inner", inner=inner).compile(name="bound between")
        graph = library.graph(two, edges=">middle middle>two", middle=middle).compile(name="bound around")
        graph.invoke({"n": 1}, {"callbacks": outer})
        told.append((handler.names, handler.ends, handler.errors))
    assert told[0] == told[1] == (["bound inside", "one"], 2, [])


def test_tags_and_handlers_of_configs_are_added(lib: Library) -> None:
    graph = lib.graph(one, edges=">one").compile().with_config(tags=["a"]).with_config(tags=["b"], callbacks=[])
    assert graph.config["tags"] == ["a", "b"]


@pytest.mark.parametrize("given", ["print", [print], 3, [Names(), None]])
def test_what_is_no_handler_is_refused(lib: Library, given: Any) -> None:
    graph = lib.graph(one, edges=">one").compile()
    for call in (
        lambda: graph.invoke({"n": 1}, {"callbacks": given}),
        lambda: asyncio.run(graph.ainvoke({"n": 1}, {"callbacks": given})),
        lambda: graph.with_config(callbacks=given),
        lambda: graph.with_config(callbacks=[Names()]).invoke({"n": 1}, {"callbacks": given}),
    ):
        with pytest.raises(TypeError, match=r"config\['callbacks'\] must be a list of LangChain's callback handlers"):
            call()


def test_handlers_need_langchain(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, handler = lib.graph(one, edges=">one").compile(), Names()
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks.base", None)
    for call in (
        lambda: graph.invoke({"n": 1}, {"callbacks": [handler]}),
        lambda: list(graph.stream({"n": 1}, {"callbacks": [handler]})),
        lambda: graph.with_config(callbacks=[handler]),
    ):
        with pytest.raises(MissingPackageError, match=r"config\['callbacks'\] needs langchain-core: pip install"):
            call()
    assert graph.invoke({"n": 1}, {"callbacks": []})["n"] == 2
    assert graph.invoke({"n": 1}, {"callbacks": None})["n"] == 2


def test_the_environment_asks_for_nothing_without_langchain(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lib.graph(one, edges=">one").compile()
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    for module in ("langchain_core", "langchain_core.callbacks.manager"):
        monkeypatch.setitem(sys.modules, module, None)
    assert graph.invoke({"n": 1})["n"] == 2


def test_a_call_that_breaks_off_ends_its_run(lib: Library) -> None:
    handler = Names()
    stream = lib.graph(one, two, edges=">one one>two").compile().stream({"n": 1}, {"callbacks": [handler]})
    next(stream)
    stream.close()
    assert isinstance(handler.errors[-1], GeneratorExit)


async def test_a_cancelled_call_ends_its_runs(lib: Library) -> None:
    handler, begun = Names(), asyncio.Event()

    async def hang(state: State) -> Any:
        begun.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(lib.graph(hang, edges=">hang").compile().ainvoke({"n": 1}, {"callbacks": [handler]}))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(handler.errors) == 2
    assert all(isinstance(error, asyncio.CancelledError) for error in handler.errors)


def test_the_graph_keeps_the_run_id_of_the_config(lib: Library) -> None:
    identifier, seen = uuid.uuid4(), []

    class Ids(Names):
        def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: uuid.UUID, **about: Any) -> None:
            seen.append((about["name"], run_id, about["parent_run_id"]))

    graph = lib.graph(one, edges=">one").compile(name="Named")
    graph.invoke({"n": 1}, {"callbacks": [Ids()], "run_id": identifier})
    graph.invoke({"n": 1}, {"callbacks": [Ids()], "run_id": "no uuid"})
    assert seen[0] == ("Named", identifier, None)
    assert (seen[1][0], seen[1][2]) == ("one", identifier)
    assert seen[2][1] != identifier


def test_a_question_is_an_interrupt_of_its_node_and_no_error_of_the_graph(lib: Library) -> None:
    def ask(state: State) -> Any:
        return {"log": [interrupt("sure?")]}

    def swallow(state: State) -> Any:
        with contextlib.suppress(Exception):
            interrupt("sure?")
        return {"log": ["swallowed"]}

    for node in (ask, swallow):
        handler = Names()
        graph = lib.graph(edges=">ask", ask=node).compile(lib.saver(), name=f"asks to {node.__name__}")
        config = {"configurable": {"thread_id": node.__name__}, "callbacks": [handler]}
        assert "__interrupt__" in graph.invoke({"n": 1}, config)
        assert [type(error) for error in handler.errors] == [GraphInterrupt]
        assert (handler.names, handler.ends) == ([graph.name, "ask"], 1)


def test_tracers_see_a_tree(lib: Library) -> None:
    collector = pytest.importorskip("langchain_core.tracers.run_collector").RunCollectorCallbackHandler()

    def leave(state: State) -> str:
        return "two"

    model = lib.fake_model("hello")

    def talk(state: State) -> Any:
        return {"log": [model.invoke("hi").content]}

    inner = lib.graph(two, talk, edges="two>talk").add_conditional_edges(lib.START, leave, ["two"])
    graph = lib.graph(one, inner=inner.compile(name="tree inside"), edges=">one").add_conditional_edges(
        "one", lambda state: "inner", ["inner"]
    )
    graph.compile(name="tree").invoke({"n": 1}, {"callbacks": [collector]})

    def tree(run: Any) -> Any:
        assert run.end_time is not None and run.error is None
        return [run.name, *map(tree, run.child_runs)]

    assert [tree(run) for run in collector.traced_runs] == [
        [
            "tree",
            ["one", ["condition"]],
            ["inner", ["tree inside", ["__start__", ["leave"]], ["two"], ["talk", ["GenericFakeChatModel"]]]],
        ]
    ]


def test_handlers_of_the_code_around_are_told(lib: Library) -> None:
    graph, handler = lib.graph(one, edges=">one").compile(name="Around"), Names()
    runnables.RunnableLambda(lambda n: graph.invoke({"n": n})["n"]).invoke(1, {"callbacks": [handler]})
    assert handler.names == ["RunnableLambda", "Around", "one"]


def test_usage_is_counted_in_nodes(lib: Library) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    usage = {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}
    answer = messages.AIMessage("hi", usage_metadata=usage, response_metadata={"model_name": "fake"})
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = models.GenericFakeChatModel(messages=iter([answer]))
    graph = lib.graph(edges=">talk", talk=lambda state: {"log": [model.invoke("hi").content]}).compile()
    with callbacks.get_usage_metadata_callback() as counted:
        graph.invoke({"n": 1})
    assert counted.usage_metadata["fake"]["total_tokens"] == 5


def test_a_handler_that_must_not_fail_fails_its_node(lib: Library) -> None:
    class Strict(Names):
        raise_error = True

        def on_chain_start(self, serialized: Any, inputs: Any, *, name: str, **about: Any) -> None:
            super().on_chain_start(serialized, inputs, name=name)
            if name == "two":
                raise ValueError("not this one")

    handler = Strict()
    with pytest.raises(ValueError, match="not this one"):
        lib.graph(one, two, edges=">one one>two").compile(name="S").invoke({"n": 1}, {"callbacks": [handler]})
    assert handler.names == ["S", "one", "two"]


async def test_async_handlers_run_on_the_loop_of_the_caller(lib: Library) -> None:
    loops: list[Any] = []

    class Loops(callbacks.AsyncCallbackHandler):  # type: ignore[misc, name-defined]
        async def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
            loops.append((about["name"], asyncio.get_running_loop()))

    async def later(state: State) -> Any:
        return {"log": ["later"]}

    graph = lib.graph(one, later, edges=">one one>later").compile(name="L")
    await graph.ainvoke({"n": 1}, {"callbacks": [Loops()]})
    assert loops == [(name, asyncio.get_running_loop()) for name in ("L", "one", "later")]


def test_plain_calls_tell_async_handlers_too(lib: Library) -> None:
    names: list[str] = []

    class Late(callbacks.AsyncCallbackHandler):  # type: ignore[misc, name-defined]
        async def on_chain_start(self, serialized: Any, inputs: Any, **about: Any) -> None:
            names.append(about["name"])

    async def later(state: State) -> Any:
        return {"log": ["later"]}

    lib.graph(one, later, edges=">one one>later").compile(name="P").invoke({"n": 1}, {"callbacks": [Late()]})
    assert names == ["P", "one", "later"]


def test_nodes_that_run_side_by_side_share_the_run_of_their_graph(lib: Library) -> None:
    both = threading.Barrier(2)

    def meet(state: State) -> Any:
        both.wait(30)
        return {"log": ["met"]}

    inner = lib.graph(edges=">a >b", a=meet, b=meet).compile(name="side by side inside")
    handler = Names()
    lib.graph(edges=">inner", inner=inner).compile(name="side").invoke({"n": 1}, {"callbacks": [handler]})
    assert sorted(handler.names) == sorted(["side", "inner", "side by side inside", "a", "b"])
    assert handler.ends == 5


TRACED = """
import sys
from graphd.checkpoint.memory import InMemorySaver
from graphd.graph import START, StateGraph

builder = StateGraph(dict).add_node("one", lambda state: state).add_edge(START, "one")
assert builder.compile(InMemorySaver(server=sys.argv[1]), name="traced").invoke(
    {"n": 1}, {"configurable": {"thread_id": "traced"}}
) == {"n": 1}
sys.modules["langchain_core.tracers.langchain"].wait_for_all_tracers()
"""


def test_the_environment_traces_programs_that_do_not_import_langchain(server: DevServer) -> None:
    sent: list[str] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent.append(self.path)
            self.send_response(202)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{collector.server_port}"
        traced = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": address, "LANGSMITH_API_KEY": "key"}
        command = [sys.executable, "-c", TRACED, server.address]
        done = subprocess.run(command, env=os.environ | traced, capture_output=True, text=True, check=False)
        collector.shutdown()
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert any(path.startswith("/runs") for path in sent), done.stderr


WORKER = """
import sys
from tests.test_callback_handlers import build_elsewhere
graph = build_elsewhere(sys.argv[1], worker=True)
print("ready", flush=True)
graph.serve()
"""


def build_elsewhere(address: str, *, worker: bool) -> Any:
    builder = StateGraph(State).add_node("one", one).add_node("raises", raises)
    builder.add_edge(START, "one").add_conditional_edges("one", lambda state: "raises" if state["n"] < 0 else "__end__")
    return builder.compile(server=address, name="elsewhere", worker=worker)


def test_nodes_of_other_processes_are_not_told(server: DevServer) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", WORKER, server.address]
    worker = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        graph, handler = build_elsewhere(server.address, worker=False), Names()
        thread = {"configurable": {"thread_id": uuid.uuid4().hex}}
        assert graph.invoke({"n": 1}, {"callbacks": [handler], **thread})["n"] == 2
        assert (handler.names, handler.ends) == (["elsewhere"], 1)
        with pytest.raises(ValueError, match="is wrong"):
            graph.invoke({"n": -5}, {"callbacks": [handler], "configurable": {"thread_id": uuid.uuid4().hex}})
        assert [str(error) for error in handler.errors] == ["-4 is wrong"]
    finally:
        worker.terminate()
        worker.wait(30)
