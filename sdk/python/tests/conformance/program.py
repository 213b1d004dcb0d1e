"""Builds graphs from the short descriptions in the case files."""

from __future__ import annotations

import asyncio
import operator
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from .library import GRAPHD, Library

END, START = "__end__", "__start__"


class Boom(Exception):
    """A failure that only the cases know."""


class Other(Exception):
    """Another one."""


@dataclass
class Answer:
    """What a person says."""

    text: str


def _concat(current: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*current, *(item for write in writes for item in write)]


def _sorted(left: list[Any], right: list[Any]) -> list[Any]:
    return sorted(left + right)


def _merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **right}


def _comma(left: str, right: str) -> str:
    return ", ".join(part for part in (left, right) if part)


def channels(library: Library) -> dict[str, Any]:
    """The kinds of keys that cases name."""
    return {
        "last": Any,
        "list+": Annotated[list, operator.add],
        "int+": Annotated[int, operator.add],
        "str+": Annotated[str, operator.add],
        "sorted+": Annotated[list, _sorted],
        "merge": Annotated[dict, _merge],
        "comma": Annotated[str, _comma],
        "messages": Annotated[list, library.add_messages],
        "untracked": Annotated[Any, library.UntrackedValue],
        "ephemeral": Annotated[Any, library.EphemeralValue],
        "any": Annotated[Any, library.AnyValue],
        "topic": Annotated[list, library.Topic(Any)],
        "topic+": Annotated[list, library.Topic(Any, accumulate=True)],
        "delta+": Annotated[list, library.DeltaChannel(_concat)],
        "delta2+": Annotated[list, library.DeltaChannel(_concat, snapshot_frequency=2)],
    }


def sleep_behind(seconds: float) -> None:
    """Lets the nodes beside it go first, on a busy machine too: a tenth of a second or less is ten times as long."""
    time.sleep(seconds if seconds > 0.1 else 10 * seconds)


class Memory:
    """What the nodes of a case remember outside of the graph; 0 at first."""

    def __getattr__(self, name: str) -> int:
        return 0


class World:
    """Everything the nodes of one case can touch."""

    def __init__(self, library: Library = GRAPHD) -> None:
        self.library, self.channels = library, channels(library)
        self.mem = Memory()
        self.ran: list[tuple[float, str]] = []
        self.control: Any = None
        self.graphs: dict[str, Any] = {}
        self._lock = threading.Lock()

    def entered(self, node: str) -> None:
        """Notes that the code of a node began."""
        with self._lock:
            self.ran.append((time.monotonic(), node))

    def names(self) -> dict[str, Any]:
        """What the code of nodes can refer to."""
        library = self.library
        shown = ("Command", "Overwrite", "Send", "get_config", "get_runtime", "interrupt")
        said = ("AIMessage", "HumanMessage", "RemoveMessage", "SystemMessage", "ToolMessage")
        return {
            **{name: getattr(library, name) for name in shown},
            **{name: getattr(library.messages, name) for name in said},
            "Answer": Answer,
            "Boom": Boom,
            "END": END,
            "Other": Other,
            "PARENT": library.Command.PARENT,
            "START": START,
            "asleep": asyncio.sleep,
            "call_sub": lambda name, value: self.graphs[name].invoke(value),
            "ctl": self,
            "mem": self.mem,
            "sleep": sleep_behind,
            "write": lambda value: library.get_stream_writer()(value),
        }

    def request_drain(self, reason: str) -> None:
        """Asks the run that is under way to stop."""
        assert self.control is not None
        self.control.request_drain(reason)

    def function(self, name: str, code: str, *, handler: bool = False) -> Callable[..., Any]:
        """A node that runs the code."""
        entered = f"handler({name or 'default'})" if handler else name
        names = self.names() | {"_entered": self.entered, "NodeError": self.library.NodeError}
        kind = "async def" if "await " in code else "def"
        parameters = "state, error: NodeError" if handler else "state"
        source = f"{kind} node({parameters}):\n    _entered({entered!r})\n{textwrap.indent(code, '    ')}"
        exec(compile(source, f"<node {name}>", "exec", dont_inherit=True), names)
        made: Callable[..., Any] = names["node"]
        return made

    def router(self, number: int, code: str) -> Callable[..., Any]:
        """A conditional edge whose decision is an expression."""
        names = self.names()
        exec(compile(f"def route(state):\n    return ({code})", "<edge>", "exec"), names)
        names["route"].__name__ = f"route{number}"
        made: Callable[..., Any] = names["route"]
        return made


def _keys(world: World, names: list[str], state: dict[str, str]) -> Any:
    kinds = {k: world.channels[state[k]] if k in state else Any for k in names}
    return TypedDict("Keys", kinds)  # type: ignore[misc]


def is_async(graph: dict[str, Any]) -> bool:
    """Some node of the graph awaits something."""
    return any("await " in code for code in graph["nodes"].values())


def build(world: World, graph: dict[str, Any]) -> Any:
    """The builder of one graph of a case."""
    state = graph["state"]
    if list(state) == ["__root__"]:
        builder = world.library.StateGraph(world.channels[state["__root__"]])
    else:
        schema = TypedDict("State", {k: world.channels[v] for k, v in state.items()})  # type: ignore[misc]
        parts = {p: _keys(world, graph[p], state) for p in ("input_schema", "output_schema") if p in graph}
        builder = world.library.StateGraph(schema, **parts)
    if defaults := graph.get("node_defaults"):
        builder.set_node_defaults(error_handler=world.function("", defaults["error_handler"], handler=True))
    for name, code in graph["nodes"].items():
        builder.add_node(name, _target(world, name, code), **_options(world, name, graph))
    for source, target in graph["edges"]:
        builder.add_edge(_edge(source), _edge(target))
    for number, branch in enumerate(graph.get("conditional_edges", [])):
        paths = branch.get("path_map")
        if isinstance(paths, dict):
            paths = {_key(k): _edge(v) for k, v in paths.items()}
        builder.add_conditional_edges(_edge(branch["from"]), world.router(number, branch["path"]), paths)
    return builder


def _key(name: str) -> Any:
    return {"true": True, "false": False, "True": True, "False": False}.get(name, name)


def _edge(name: Any) -> Any:
    return {"START": START, "END": END}.get(name, name) if isinstance(name, str) else name


def _target(world: World, name: str, code: str) -> Any:
    if code.startswith("<subgraph "):
        return world.graphs[code[len("<subgraph ") : -1]]
    return world.function(name, code)


def _options(world: World, name: str, graph: dict[str, Any]) -> dict[str, Any]:
    given = dict(graph.get("node_options", {}).get(name, {}))
    options: dict[str, Any] = {}
    if retry := given.pop("retry", None):
        options["retry_policy"] = _retry(world, retry)
    if handler := given.pop("error_handler", None):
        options["error_handler"] = world.function(name, handler, handler=True)
    if given.pop("cache", None) is not None:
        options["cache_policy"] = world.library.CachePolicy()
    if keys := graph.get("node_input_schema", {}).get(name):
        options["input_schema"] = _keys(world, keys, graph["state"])
    return options | given


def _retry(world: World, given: dict[str, Any]) -> Any:
    known = {"Boom": Boom, "Other": Other, "ValueError": ValueError}
    if "retry_on" in given:
        given = given | {"retry_on": [known[name] for name in given["retry_on"]]}
    return world.library.RetryPolicy(**given)


def compile_all(world: World, case: dict[str, Any], saver: Any) -> None:
    """Compiles the graphs of a case, children first, as they are listed."""
    for graph in case["graphs"]:
        options = dict(graph["compile"])
        kind = options.pop("checkpointer")
        checkpointer = {"saver": saver, "none": None, "inherit": None, "persist": True, "disabled": False}[kind]
        timeout = options.pop("step_timeout", None)
        if options.pop("cache", None):
            options["cache"] = world.library.module("cache.memory").InMemoryCache()
        name = options.pop("name", f"{case['id']}-{graph['name']}")
        compiled = build(world, graph).compile(checkpointer, name=name, **options)
        if timeout is not None:
            compiled.step_timeout = timeout
        world.graphs[graph["name"]] = compiled
