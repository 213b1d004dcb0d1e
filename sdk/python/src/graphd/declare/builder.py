"""Building graphs, with the methods LangGraph users know."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, get_type_hints

from graphd.constants import END, START
from graphd.declare.actions import Action, read_action
from graphd.declare.compiled_graph import CompiledGraph
from graphd.declare.nodes import (
    BranchDeclaration,
    NodeDeclaration,
    Policies,
    label_destinations,
    paths_of,
    retry_policies,
)
from graphd.declare.schema import Schema, read_schema
from graphd.errors import InvalidGraphError
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy

Self = TypeVar("Self", bound="Builder")


class Builder:
    """A graph under construction."""

    def __init__(
        self,
        state_schema: Any,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
        **older: Any,
    ) -> None:
        input_schema = input_schema or older.pop("input", None)
        output_schema = output_schema or older.pop("output", None)
        context_schema = context_schema or older.pop("config_schema", None)
        if older:
            raise TypeError(f"StateGraph got unknown arguments: {', '.join(sorted(older))}")
        self.state_schema, self.context_schema = state_schema, context_schema
        self.input_schema, self.output_schema = input_schema or state_schema, output_schema or state_schema
        self.nodes: dict[str, NodeDeclaration] = {}
        self.edges: set[tuple[str, str]] = set()
        self.waiting_edges: set[tuple[tuple[str, ...], str]] = set()
        self.branches: dict[str, dict[str, BranchDeclaration]] = {}
        self.schemas: dict[str, Schema] = {}
        self.order: list[tuple[tuple[str, ...], str]] = []
        self._defaults = Policies()
        self.state = self._add_schema(self.state_schema)
        self.input = self._add_schema(self.input_schema)
        self.output = self._add_schema(self.output_schema)
        for role, schema in (("input", self.input), ("output", self.output)):
            if schema is not self.state and schema.managed():
                raise _invalid_graph(f"the {role} schema must not contain computed keys: {', '.join(schema.managed())}")

    def _add_schema(self, declared: Any) -> Schema:
        schema = next((s for s in self.schemas.values() if s.type is declared), None) or read_schema(declared)
        for name, channel in schema.channels().items():
            for known in (s.channels().get(name) for s in self.schemas.values()):
                if known is None or type(channel).__name__ == "LastValue" or type(known).__name__ == "LastValue":
                    continue
                if not known.same_as(channel):
                    raise _invalid_graph(f"Channel '{name}' already exists with a different type")
        self.schemas[f"{len(self.schemas)}"] = schema
        return schema

    def add_node(
        self: Self,
        node: Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: dict[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        destinations: dict[str, str] | tuple[str, ...] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        trace_policy: Any = None,
        **older: Any,
    ) -> Self:
        """Adds a node: ``add_node(fn)`` or ``add_node("name", fn)``.

        The node may be a function, a coroutine function, a runnable, or
        another compiled graph. It gets the state, and by parameters of these
        names ``config``, ``runtime``, ``writer`` and ``store``; it returns what
        changes, or a Command.

        ``defer`` lets it wait for everything else; ``retry_policy``,
        ``cache_policy``, ``timeout`` (seconds, of async nodes) and
        ``error_handler`` say what becomes of a try; ``destinations`` name where
        its commands may lead, for drawings.
        """
        del trace_policy  # graphd traces no values
        retry_policy = retry_policy or older.pop("retry", None)
        input_schema = input_schema or older.pop("input", None)
        if older:
            raise TypeError(f"add_node got unknown arguments: {', '.join(sorted(older))}")
        name, target = (node, action) if isinstance(node, str) else ("", node)
        if target is None:
            raise RuntimeError(f"node {name!r} has no action")
        policies = Policies(retry_policies(retry_policy), cache_policy, TimeoutPolicy.coerce(timeout), error_handler)
        is_subgraph = isinstance(target, CompiledGraph) and not target.is_function
        declared = None if is_subgraph else read_action(target)
        name = name or (target.name if declared is None else declared.name)
        self._check_name(name)
        schema = self._node_schema(input_schema, declared)
        self.nodes[name] = NodeDeclaration(
            name=name,
            target=target,
            action=declared,
            schema=schema,
            policies=policies,
            deferred=defer,
            metadata=metadata or {},
            destinations=label_destinations(destinations or (declared.destinations if declared else ())),
        )
        if policies.timeout is not None and declared is not None and not declared.is_async:
            del self.nodes[name]
            raise _invalid_graph(f"node '{name}' has a timeout, so it must be async: a running thread can't be stopped")
        return self

    def _check_name(self, name: str) -> None:
        if not name:
            raise _invalid_graph("a node needs a name: add_node('name', action)")
        if name in self.nodes:
            raise _invalid_graph(f"Node `{name}` already present.")
        if name in (START, END):
            raise _invalid_graph(f"Node `{name}` is reserved.")
        for reserved in ("|", ":"):
            if reserved in name:
                raise _invalid_graph(f"'{reserved}' is a reserved character and is not allowed in the node names.")

    def _node_schema(self, given: Any, action: Action | None) -> Schema:
        if given is not None:
            return self._add_schema(given)
        inferred = action.state_type if action else None
        if isinstance(inferred, type) and inferred is not dict and _has_keys(inferred):
            return self._add_schema(inferred)
        return self.state

    def add_edge(self: Self, start_key: str | list[str], end_key: str) -> Self:
        """Leads from a node to another; from a list of nodes, waits for all of them.

        START and END are where a run begins and where it may stop.
        """
        if end_key == START:
            raise _invalid_graph("START cannot be an end node")
        if isinstance(start_key, str):
            if start_key == END:
                raise _invalid_graph("END cannot be a start node")
            self.edges.add((start_key, end_key))
            self._record_order((start_key,), end_key)
            return self
        for name in start_key:
            if name == END:
                raise _invalid_graph("END cannot be a start node")
            if name not in self.nodes:
                raise _invalid_graph(f"Need to add_node `{name}` first")
        if end_key != END and end_key not in self.nodes:
            raise _invalid_graph(f"Need to add_node `{end_key}` first")
        self.waiting_edges.add((tuple(start_key), end_key))
        self._record_order(tuple(start_key), end_key)
        return self

    def _record_order(self, sources: tuple[str, ...], target: str) -> None:
        if (sources, target) not in self.order:
            self.order.append((sources, target))

    def add_conditional_edges(
        self: Self,
        source: str,
        path: Callable[..., Any] | Any,
        path_map: dict[Hashable, str] | list[str] | None = None,
    ) -> Self:
        """Lets a function decide where to go after a node.

        ``path`` gets the state, and returns one target or a list of them: names
        of nodes, END, or Send, which gives a node an input of its own.
        ``path_map`` leads from what it returns to nodes. Without one the names
        of a ``Literal`` that it is annotated with count as its targets, or else
        all nodes.
        """
        action = read_action(path)
        name = action.name or "condition"
        paths = paths_of(path, path_map)
        taken = self.branches.setdefault(source, {})
        if name in taken:
            raise _invalid_graph(f"Branch with name `{name}` already exists for node `{source}`")
        targets = tuple(dict.fromkeys(paths.values())) if paths else ()
        taken[name] = BranchDeclaration(source, name, action, paths, targets)
        if isinstance(action.state_type, type) and _has_keys(action.state_type):
            self._add_schema(action.state_type)
        return self

    def add_sequence(self: Self, nodes: Sequence[Any]) -> Self:
        """Adds nodes that run one after the other: actions, or (name, action) pairs."""
        if not nodes:
            raise _invalid_graph("Sequence requires at least one node.")
        before = ""
        for node in nodes:
            name, target = node if isinstance(node, tuple) else (read_action(node).name, node)
            if name in self.nodes:
                raise _invalid_graph(f"Node names must be unique: node with the name '{name}' already exists.")
            self.add_node(name, target)
            if before:
                self.add_edge(before, name)
            before = name
        return self

    def set_node_defaults(
        self: Self,
        *,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        error_handler: Any = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
    ) -> Self:
        """Sets the policies of nodes that have none of their own."""
        given = Policies(retry_policies(retry_policy), cache_policy, TimeoutPolicy.coerce(timeout), error_handler)
        self._defaults = given.with_defaults(self._defaults)
        return self

    def set_entry_point(self: Self, key: str) -> Self:
        """The same as ``add_edge(START, key)``."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self: Self, path: Callable[..., Any], path_map: dict[Hashable, str] | list[str] | None = None
    ) -> Self:
        """The same as ``add_conditional_edges(START, path, path_map)``."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self: Self, key: str) -> Self:
        """The same as ``add_edge(key, END)``."""
        return self.add_edge(key, END)

    def validate(self: Self, interrupt: Sequence[str] | None = None) -> Self:
        """Raises InvalidGraphError, a ValueError, for the first mistake."""
        sources = {a for a, _ in self.edges} | {a for group, _ in self.waiting_edges for a in group} | {*self.branches}
        for source in sorted(sources):
            if source not in self.nodes and source != START:
                raise _invalid_graph(f"Found edge starting at unknown node '{source}'")
        if START not in sources:
            raise _invalid_graph("Graph must have an entrypoint: add at least one edge from START to another node")
        for source, branches in self.branches.items():
            for branch in branches.values():
                for target in branch.targets:
                    if target not in self.nodes and target != END:
                        raise _invalid_graph(
                            f"At '{source}' node, '{branch.name}' branch found unknown target '{target}'"
                        )
        for _, target in sorted(self.edges):
            if target not in self.nodes and target != END:
                raise _invalid_graph(f"Found edge ending at unknown node `{target}`")
        for name in interrupt or ():
            if name not in self.nodes:
                raise _invalid_graph(f"Interrupt node `{name}` not found")
        return self

    def validate_part(self, of: str, **given: Any) -> None:
        """Raises InvalidGraphError for what nodes of a graph that the server has can't bring along."""
        if not of:
            raise _invalid_graph("part_of is empty: want the name of a graph of the server")
        for option, value in given.items():
            if value is not None:
                raise _invalid_graph(
                    f"{option} is for the server's graph {of!r} to declare: leave it out beside part_of"
                )
        targets = [target for _, target in [*self.edges, *self.waiting_edges]]
        if targets:
            raise _invalid_graph(
                f"part_of: the edges are those of the server's graph: leave out add_edge to {targets[0]!r}"
            )
        if not self.nodes:
            raise _invalid_graph("part_of: want a node to serve: add_node(name, action)")
        for source in self.branches:
            if source not in self.nodes:
                raise _invalid_graph(f"part_of: a condition is after the unknown node {source!r}")
        for name, node in self.nodes.items():
            if node.subgraph is not None:
                raise _invalid_graph(f"part_of: the graph in node {name!r} is for the server's graph to declare")
            if node.policies.with_defaults(self._defaults).error_handler is not None:
                raise _invalid_graph(f"part_of: the error handler of {name!r} is for the server's graph to declare")

    @property
    def defaults(self) -> Policies:
        """The policies of nodes that have none of their own."""
        return self._defaults


def _invalid_graph(message: str) -> InvalidGraphError:
    return InvalidGraphError(message, reason="INVALID_GRAPH")


def _has_keys(kind: type) -> bool:
    if kind.__module__ == "builtins":
        return False
    try:
        return bool(get_type_hints(kind))
    except Exception:  # unresolvable names: take the schema of the graph
        return False
