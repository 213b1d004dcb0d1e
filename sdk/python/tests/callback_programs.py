"""Programs whose callback events are compared: each runs on LangGraph and on graphd."""

from __future__ import annotations

import importlib
import operator
import sys
from collections.abc import Callable
from typing import Annotated, Any

from typing_extensions import TypedDict


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


class Library:
    """The names that a program uses, of one library."""

    def __init__(self, root: str, server: str) -> None:
        def load(name: str) -> Any:
            return importlib.import_module(f"{root}.{name}")

        self.root, self._server = root, server
        self._compiled: list[Any] = []
        self.StateGraph = self._record_compiled(load("graph").StateGraph)
        self.START, self.END = load("graph").START, load("graph").END
        self.Command, self.Send, self.interrupt = load("types").Command, load("types").Send, load("types").interrupt
        self.RetryPolicy, self.CachePolicy = load("types").RetryPolicy, load("types").CachePolicy
        self.InMemoryCache = load("cache.memory").InMemoryCache
        self.ToolNode = load("prebuilt").ToolNode
        state = load("graph").MessagesState
        self.MessagesGraph = lambda: self.StateGraph(state)
        self._saver = load("checkpoint.memory").InMemorySaver

    def _record_compiled(self, kind: Any) -> Any:
        compiled = self._compiled

        class Recorded(kind):  # type: ignore[misc]
            def compile(self, *args: Any, **kwargs: Any) -> Any:
                compiled.append(super().compile(*args, **kwargs))
                return compiled[-1]

        return Recorded

    def close(self) -> None:
        """Ends the workers of the program, before another one of the same graphs begins."""
        for graph in self._compiled if self.root == "graphd" else ():
            graph.detach()

    def saver(self) -> Any:
        return self._saver(server=self._server) if self.root == "graphd" else self._saver()

    def graph(self, *nodes: Callable[..., Any], edges: str = "", **named: Any) -> Any:
        """A graph of functions and named nodes; edges are ``a>b``, ``a+b>c``, and of START and END ``>a`` and ``a>``."""
        builder = self.StateGraph(State)
        for node in nodes:
            builder.add_node(node)
        for name, node in named.items():
            builder.add_node(name, node)
        for edge in edges.split():
            sources, target = edge.split(">")
            ends = [source or self.START for source in sources.split("+")]
            builder.add_edge(ends if len(ends) > 1 else ends[0], target or self.END)
        return builder

    def fake_model(self, *answers: str) -> Any:
        models = importlib.import_module("langchain_core.language_models.fake_chat_models")
        return models.GenericFakeChatModel(messages=iter(answers))


Call = Callable[[Any, Any], Any]
"""Runs a graph on an input, in some way, with the recorded config."""
Program = Callable[[Library, Call], Any]


def one(state: State) -> Any:
    return {"n": state["n"] + 1, "log": ["one"]}


def two(state: State) -> Any:
    return {"log": ["two"]}


def three(state: State) -> Any:
    return {"log": ["three"]}


def raises(state: State) -> Any:
    raise ValueError(f"{state['n']} is wrong")


def sequence(lib: Library, call: Call) -> Any:
    return call(lib.graph(one, two, edges=">one one>two two>").compile(name="Steps"), {"n": 1})


def model(lib: Library, call: Call) -> Any:
    chat = lib.fake_model("hello there", "bye now")

    def talk(state: State) -> Any:
        return {"log": [chat.invoke("hi").content]}

    def again(state: State, config) -> Any:  # type: ignore[no-untyped-def]
        return {"log": [chat.invoke("hi", config).content]}

    return call(lib.graph(talk, again, edges=">talk talk>again").compile(), {"n": 1})


def runnable_nodes(lib: Library, call: Call) -> Any:
    lambdas = importlib.import_module("langchain_core.runnables")
    chain = lambdas.RunnableLambda(lambda state: state["n"]) | lambdas.RunnableLambda(lambda n: {"n": n + 1})
    return call(lib.graph(edges=">chain", chain=chain.with_config(run_name="adds")).compile(), {"n": 1})


def decisions(lib: Library, call: Call) -> Any:
    def enter(state: State) -> str:
        return "one"

    def leave(state: State) -> str:
        return "two"

    def also(state: State) -> Any:
        return ["two"]

    builder = lib.graph(one, two, three, edges="two>three three>")
    builder.add_conditional_edges(lib.START, enter, ["one"])
    builder.add_conditional_edges("one", leave, ["two", "three"]).add_conditional_edges("one", also, ["two"])
    return call(builder.compile(), {"n": 1})


def decisions_beside_edges(lib: Library, call: Call) -> Any:
    def leave(state: State) -> Any:
        return lib.END

    builder = lib.graph(one, two, three, edges=">one one>two one>three one>")
    for node in ("one", "three"):
        builder.add_conditional_edges(node, leave, [lib.END])
    return call(builder.compile(), {"n": 1})


def joins(lib: Library, call: Call) -> Any:
    def leave(state: State) -> Any:
        return lib.END

    builder = lib.graph(one, two, three, edges=">one >two one+two>three").add_conditional_edges("one", leave)
    return call(builder.compile(), {"n": 1})


def failing_decision(lib: Library, call: Call) -> Any:
    def leave(state: State) -> Any:
        raise KeyError("where to")

    return call(lib.graph(one, edges=">one").add_conditional_edges("one", leave, [lib.END]).compile(), {"n": 1})


def commands(lib: Library, call: Call) -> Any:
    def jump(state: State) -> Any:
        return lib.Command(update={"log": ["jump"]}, goto="two")

    return call(lib.graph(jump, two, edges=">jump").compile(), {"n": 1})


def sends(lib: Library, call: Call) -> Any:
    def spread(state: State) -> Any:
        return [lib.Send("one", {"n": 7}), lib.Send("one", {"n": 8})]

    builder = lib.graph(one, edges="one>")
    return call(builder.add_conditional_edges(lib.START, spread, ["one"]).compile(), {"n": 1})


def failing_node(lib: Library, call: Call) -> Any:
    return call(lib.graph(one, raises, edges=">one one>raises").compile(), {"n": 1})


def retried_node(lib: Library, call: Call) -> Any:
    tries: list[int] = []

    def flaky(state: State) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return {"log": ["at last"]}

    policy = lib.RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ValueError)
    builder = lib.StateGraph(State).add_node(flaky, retry_policy=policy).add_edge(lib.START, "flaky")
    return call(builder.compile(), {"n": 1})


def handled_error(lib: Library, call: Call) -> Any:
    def handle(state: State) -> Any:
        return {"log": ["handled"]}

    builder = lib.StateGraph(State).add_node(raises, error_handler=handle).add_edge(lib.START, "raises")
    return call(builder.compile(), {"n": 1})


def too_many_steps(lib: Library, call: Call) -> Any:
    graph = lib.graph(one, edges=">one one>one").compile()
    return call(graph.with_config(recursion_limit=3), {"n": 1})


def wrong_update(lib: Library, call: Call) -> Any:
    return call(
        lib.graph(first=lambda state: {"n": 1}, second=lambda state: {"n": 2}, edges=">first >second").compile(),
        {"n": 1},
    )


def configured(lib: Library, call: Call) -> Any:
    builder = lib.graph(two, edges=">one one>two").add_node(one, metadata={"owner": "ann"})
    graph = builder.compile(name="Inner name")
    return call(graph.with_config(tags=["bound"], metadata={"a": 1}, run_name="Outer name"), {"n": 1})


def cached(lib: Library, call: Call) -> Any:
    def leave(state: State) -> Any:
        return "two"

    builder = lib.graph(two, edges=">one").add_node(one, cache_policy=lib.CachePolicy())
    graph = builder.add_conditional_edges("one", leave, ["two"]).compile(cache=lib.InMemoryCache(), name="cached")
    call(graph, {"n": 1})
    call(graph, {"n": 1})


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def fail(a: int) -> int:
    """Fails."""
    raise ValueError(f"{a} is wrong")


def tools(lib: Library, call: Call) -> Any:
    tool = importlib.import_module("langchain_core.tools").tool
    return call_tools(lib, call, [tool(add), tool(fail)])


def functions_as_tools(lib: Library, call: Call) -> Any:
    return call_tools(lib, call, [add, fail])


def call_tools(lib: Library, call: Call, given: list[Any]) -> Any:
    messages = importlib.import_module("langchain_core.messages")

    def ask(state: Any) -> Any:
        first = [{"name": "add", "args": {"a": 1, "b": 2}, "id": "c1"}]
        calls = first if len(state["messages"]) == 1 else [{"name": "fail", "args": {"a": 3}, "id": "c2"}]
        return {"messages": [messages.AIMessage("", id=f"m{len(state['messages'])}", tool_calls=calls)]}

    node = lib.ToolNode(given, handle_tool_errors=True)
    builder = lib.MessagesGraph().add_node("ask", ask).add_node("tools", node).add_node("again", ask)
    builder.add_node("more", node).add_edge(lib.START, "ask").add_edge("ask", "tools")
    graph = builder.add_edge("tools", "again").add_edge("again", "more").compile(name="uses tools")
    return call(graph, {"messages": [messages.HumanMessage("go", id="m0")]})


def question(lib: Library, call: Call) -> Any:
    def ask(state: State) -> Any:
        return {"log": [lib.interrupt("sure?")]}

    graph = lib.graph(one, ask, edges=">one one>ask").compile(lib.saver(), name="asks")
    call(graph, {"n": 1})
    call(graph, lib.Command(resume="yes"))


def breakpoint(lib: Library, call: Call) -> Any:
    graph = lib.graph(one, two, edges=">one one>two").compile(lib.saver(), interrupt_before=["two"], name="stops")
    call(graph, {"n": 1})
    call(graph, None)


def graph_as_node(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, two, edges=">one one>two").compile(name="inside graph_as_node")
    return call(lib.graph(three, edges=">inner inner>three", inner=inner).compile(), {"n": 1})


def configured_graph_as_node(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, edges=">one").compile(name="inside configured_graph_as_node")
    bound = inner.with_config(tags=["bound"], metadata={"bound": 1}, run_name="Renamed")
    return call(lib.graph(edges=">inner", inner=bound).compile(), {"n": 1})


def graphs_in_a_row(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, edges=">one").compile(name="inside graphs_in_a_row")
    middle = lib.graph(two, edges=">deep deep>two", deep=inner).compile(name="middle of graphs_in_a_row")
    return call(lib.graph(edges=">first first>second", first=middle, second=middle).compile(), {"n": 1})


def graph_that_decides(lib: Library, call: Call) -> Any:
    def enter(state: State) -> str:
        return "one"

    inner = lib.graph(one, edges="one>").add_conditional_edges(lib.START, enter, ["one"]).compile(name="decides")
    return call(lib.graph(edges=">inner", inner=inner).compile(), {"n": 1})


def graph_that_fails(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, raises, edges=">one one>raises").compile(name="inside graph_that_fails")
    return call(lib.graph(edges=">inner", inner=inner).compile(), {"n": 1})


def graph_that_asks(lib: Library, call: Call) -> Any:
    def ask(state: State) -> Any:
        return {"log": [lib.interrupt("sure?")]}

    inner = lib.graph(one, ask, edges=">one one>ask").compile(name="inside graph_that_asks")
    graph = lib.graph(three, edges=">inner inner>three", inner=inner).compile(lib.saver(), name="asks inside")
    call(graph, {"n": 1})
    call(graph, lib.Command(resume="yes"))


def graph_that_stops(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, two, edges=">one one>two").compile(name="inside graph_that_stops", interrupt_after=["one"])
    graph = lib.graph(three, edges=">inner inner>three", inner=inner).compile(lib.saver(), name="stops inside")
    call(graph, {"n": 1})
    call(graph, None)


def graph_that_commands(lib: Library, call: Call) -> Any:
    def leave(state: State) -> Any:
        return lib.Command(graph=lib.Command.PARENT, update={"log": ["left"]}, goto="three")

    inner = lib.graph(one, leave, edges=">one one>leave").compile(name="inside graph_that_commands")
    return call(lib.graph(three, edges=">inner", inner=inner).compile(), {"n": 1})


def failed_after_a_graph(lib: Library, call: Call) -> Any:
    inner = lib.graph(one, edges=">one").compile(name="inside failed_after_a_graph")
    graph = lib.graph(edges=">inner inner>inner", inner=inner).compile()
    return call(graph.with_config(recursion_limit=2), {"n": 1})


def called_graph(lib: Library, call: Call) -> Any:
    inner = lib.graph(two, edges=">two").compile(name="inside called_graph")

    def calls(state: State) -> Any:
        return {"log": inner.invoke({"n": 5})["log"]}

    def passes(state: State, config) -> Any:  # type: ignore[no-untyped-def]
        return {"log": [list(inner.stream({"n": 6}, config, stream_mode="updates"))]}

    return call(lib.graph(calls, passes, edges=">calls calls>passes").compile(), {"n": 1})


def called_graph_that_fails(lib: Library, call: Call) -> Any:
    inner = lib.graph(raises, edges=">raises").compile(name="inside called_graph_that_fails")

    def calls(state: State) -> Any:
        return inner.invoke({"n": 5})

    return call(lib.graph(calls, edges=">calls").compile(), {"n": 1})


def called_graph_that_asks(lib: Library, call: Call) -> Any:
    def ask(state: State) -> Any:
        return {"log": [lib.interrupt("sure?")]}

    inner = lib.graph(ask, edges=">ask").compile(name="inside called_graph_that_asks")

    def calls(state: State) -> Any:
        return {"log": inner.invoke({"n": 5})["log"]}

    graph = lib.graph(calls, edges=">calls").compile(lib.saver(), name="asks where it is called")
    call(graph, {"n": 1})
    call(graph, lib.Command(resume="yes"))


def in_a_chain(lib: Library, call: Call) -> Any:
    lambdas = importlib.import_module("langchain_core.runnables")
    graph = lib.graph(one, edges=">one").compile(name="Linked")
    return call(lambdas.RunnableLambda(lambda state: state) | graph, {"n": 1})


def in_a_function(lib: Library, call: Call) -> Any:
    lambdas = importlib.import_module("langchain_core.runnables")
    graph = lib.graph(one, edges=">one").compile(name="Around")

    def run(state: State) -> Any:
        return graph.invoke(state, {"tags": ["inside"]})

    return call(lambdas.RunnableLambda(run), {"n": 1})


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        sequence,
        model,
        runnable_nodes,
        decisions,
        decisions_beside_edges,
        joins,
        failing_decision,
        commands,
        sends,
        failing_node,
        retried_node,
        handled_error,
        too_many_steps,
        wrong_update,
        configured,
        cached,
        tools,
        functions_as_tools,
        question,
        breakpoint,
        graph_as_node,
        configured_graph_as_node,
        graphs_in_a_row,
        graph_that_decides,
        graph_that_fails,
        graph_that_asks,
        graph_that_stops,
        graph_that_commands,
        failed_after_a_graph,
        called_graph,
        called_graph_that_fails,
        called_graph_that_asks,
        in_a_chain,
        in_a_function,
    )
}

# Before Python 3.11 nodes of LangGraph that run on a loop ask, call graphs and call models only with their config.
NEED_CONTEXT = {
    "model",
    "question",
    "graph_that_asks",
    "called_graph",
    "called_graph_that_fails",
    "called_graph_that_asks",
}
ON_LOOPS = [name for name in PROGRAMS if sys.version_info >= (3, 11) or name not in NEED_CONTEXT]
