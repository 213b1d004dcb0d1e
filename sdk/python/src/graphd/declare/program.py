"""A graph that is ready to run: what it is called and who does what in it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2
from graphd.channels import BaseChannel
from graphd.constants import END, ROOT, START, TASK_SEPARATOR
from graphd.declare.actions import Action, read_action
from graphd.declare.builder import Builder
from graphd.declare.functional import INPUT, OUTPUT, PREVIOUS, FunctionBuilder
from graphd.declare.module_names import find_module_name
from graphd.declare.nodes import BranchDeclaration, NodeDeclaration, Policies
from graphd.declare.options import CompileOptions
from graphd.declare.schema import merge_channels
from graphd.names import DEFAULT_HANDLER, HANDLER_PREFIX

_names: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()
_names_lock = threading.Lock()


class Program:
    """The executable side of a compiled graph."""

    def __init__(self, builder: Builder, options: CompileOptions) -> None:
        self.builder, self.version = builder, options.version
        self.interrupt_before, self.interrupt_after = options.interrupt_before, options.interrupt_after
        self.cache, self.store = options.cache, options.store
        self.drift, self.drift_ignore = options.drift, options.drift_ignore
        self.step_timeout: float | None = None
        self._has_name = True
        self.nodes = dict(builder.nodes)
        self.called = {n.name: n.called for n in self.nodes.values() if n.called is not None}
        self._add_handlers()
        self.channels: dict[str, BaseChannel[Any]] = merge_channels(s.channels() for s in builder.schemas.values())
        self.is_part = options.part_of is not None
        named = options.name if options.part_of is None else options.part_of
        self.public_name = named or "LangGraph"
        self.name = named or _unique_name(self)

    def give_up_name(self) -> None:
        """Lets another graph have the name, should it be a made-up one."""
        self._has_name = False

    @property
    def has_name(self) -> bool:
        """It did not give its name up."""
        return self._has_name

    def _add_handlers(self) -> None:
        for node in list(self.nodes.values()):
            handler, own = self.policies_of(node).error_handler, node.policies.error_handler
            if handler is None or node.handles:
                continue
            name = f"{HANDLER_PREFIX}{node.name}" if own is not None else DEFAULT_HANDLER
            if name not in self.nodes:
                self.nodes[name] = self._declare_handler(name, handler, node.name)

    def _declare_handler(self, name: str, target: Any, handles: str) -> NodeDeclaration:
        action = read_action(target)
        retry, timeout = self.builder.defaults.retry, self.builder.defaults.timeout
        return NodeDeclaration(
            name=name,
            target=target,
            action=action,
            schema=self.builder.state,
            policies=Policies(retry=retry, timeout=timeout),
            destinations=dict.fromkeys(action.destinations),
            handles=handles,
        )

    def policies_of(self, node: NodeDeclaration) -> Policies:
        """How a node is run."""
        return node.policies if node.handles else node.policies.with_defaults(self.builder.defaults)

    def handler_of(self, node: NodeDeclaration) -> str:
        """The node that takes over when this one has failed, "" for none."""
        if node.handles:
            return ""
        own = f"{HANDLER_PREFIX}{node.name}"
        if own in self.nodes:
            return own
        return DEFAULT_HANDLER if self.policies_of(node).error_handler is not None else ""

    def find_branch(self, source: str, name: str) -> BranchDeclaration:
        """A conditional edge; KeyError when there is none."""
        return self.builder.branches[source][name]

    @functools.cached_property
    def children(self) -> dict[str, Any]:
        """The compiled graphs that are nodes, by node."""
        return {n.name: n.subgraph for n in self.nodes.values() if n.subgraph is not None}

    @functools.cached_property
    def graphs(self) -> dict[str, Any]:
        """The compiled graphs that are nodes or that nodes call, by node."""
        return self.called | self.children

    def descendants(self) -> list[Program]:
        """The graphs that are nodes below this one, innermost first, each once."""
        found: dict[int, Program] = {}
        for child in self.children.values():
            for one in [*child.program.descendants(), child.program]:
                found.setdefault(id(one), one)
        return list(found.values())

    def find_graph(self, levels: Iterable[str]) -> Program | None:
        """The graph in a namespace, given by the public names of its levels; None when there is none."""
        program: Program | None = self
        for level in levels:
            child = program.graphs.get(level.partition(TASK_SEPARATOR)[0]) if program else None
            program = child.program if child is not None else None
        return program

    @functools.cached_property
    def readable_programs(self) -> dict[str, Program]:
        """The graphs whose states may show, by name: this one, and all that are
        nodes or are called below it."""
        found: dict[int, Program] = {}
        left = [g.program for g in self.graphs.values()]
        while left:
            one = left.pop()
            if found.setdefault(id(one), one) is one:
                left += [g.program for g in one.graphs.values() if id(g.program) not in found]
        return {p.name: p for p in [*found.values(), self]}

    @functools.cached_property
    def is_root(self) -> bool:
        """The whole state is one value."""
        return ROOT in self.channels

    @functools.cached_property
    def shown_keys(self) -> list[str] | None:
        """The keys of the output, None when that is the whole state."""
        output = self.builder.output
        if output.is_root or self.function is not None or set(output.channels()) >= set(self.channels):
            return None
        return list(output.channels())

    @functools.cached_property
    def short_lived_keys(self) -> frozenset[str]:
        """The keys whose values are gone after a superstep that does not write them."""
        short = {"any", "ephemeral", "topic_once"}
        return frozenset(name for name, channel in self.channels.items() if channel.declare().reducer in short)

    @functools.cached_property
    def message_keys(self) -> frozenset[str]:
        """The keys whose messages all have ids."""
        return frozenset(name for name, channel in self.channels.items() if channel.declare().reducer == "messages")

    @functools.cached_property
    def _decoders(self) -> dict[str, Callable[[Any], Any]]:
        found: dict[str, Callable[[Any], Any]] = {}
        for schema in self.builder.schemas.values():
            for name, key in schema.keys.items():
                found.setdefault(name, key.decode)
        return found

    @property
    def function(self) -> FunctionBuilder | None:
        """The declaration of a graph that is one function, an entrypoint; None for other graphs."""
        return self.builder if isinstance(self.builder, FunctionBuilder) else None

    def read_previous(self, channels: Mapping[str, payload_pb2.Payload]) -> Any:
        """What an entrypoint has kept for its next call; None if this is another graph."""
        if self.function is None or PREVIOUS not in channels:
            return None
        return self.function.read_key(PREVIOUS, {PREVIOUS: codec.value_of(channels[PREVIOUS])})

    def decode_input(self, stored: Any) -> Any:
        """What a node reads: the input of an entrypoint, a part of the state otherwise."""
        return self.decode_state(stored) if self.function is None else self.function.read_key(INPUT, stored)

    def decode_state(self, stored: Any) -> Any:
        """A state, or a part of it, with objects where the state declares them.

        That of an entrypoint is what it has returned.
        """
        if self.function is not None:
            return self.function.read_key(OUTPUT, stored)
        if self.is_root:
            return self._decoders[ROOT](stored)
        if not isinstance(stored, dict):
            return stored
        return {k: self._decoders[k](v) if k in self._decoders else v for k, v in stored.items()}

    def cache_prefix(self, node: str) -> str:
        """What the keys of a node in the cache begin with."""
        return f"{self.name}/{node}/"

    def branch_targets(self, branch: BranchDeclaration) -> tuple[str, ...]:
        """Where a conditional edge may lead."""
        return branch.targets or (*(n for n in self.nodes if not self.nodes[n].handles), END)


def _unique_name(program: Program) -> str:
    """A name for a graph without one: the same in every process that builds
    the same graph of the same functions, and another one for a second graph
    that would take it while the first is alive. What is compiled of one builder
    is one graph."""
    digest = hashlib.blake2b(digest_size=5)
    for node in program.nodes.values():
        digest.update(f"{node.name}={_code_of(node.action)};".encode())
    for source, branches in program.builder.branches.items():
        digest.update(f"{source}>{','.join(branches)};".encode())
    stem = f"LangGraph-{digest.hexdigest()}"
    with _names_lock:
        for number in itertools.count(1):
            name = stem if number == 1 else f"{stem}-{number}"
            known = _names.get(name)
            if known is None or not known.has_name or known.builder is program.builder:
                _names[name] = program
                return name
    raise AssertionError("unreachable")


def _code_of(action: Action | None) -> str:
    if action is None:
        return START
    target = action.call
    module = find_module_name(getattr(target, "__module__", "") or "")
    return f"{module}.{getattr(target, '__qualname__', type(target).__qualname__)}"
