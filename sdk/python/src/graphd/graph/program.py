"""A graph that is ready to run: what it is called and who does what in it."""

from __future__ import annotations

import hashlib
import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any

from graphd.channels import BaseChannel
from graphd.constants import END, START
from graphd.graph.actions import Action, read_action
from graphd.graph.declare import BranchDeclaration, NodeDeclaration, Policies
from graphd.graph.names import DEFAULT_HANDLER, HANDLER_PREFIX
from graphd.graph.spec import merged_channels

if TYPE_CHECKING:
    from graphd.graph.state import StateGraph

_names: weakref.WeakValueDictionary[str, Program] = weakref.WeakValueDictionary()
_names_lock = threading.Lock()


class Program:
    """The executable side of a compiled graph."""

    def __init__(
        self,
        builder: StateGraph,
        *,
        name: str | None,
        version: str,
        interrupt_before: tuple[str, ...],
        interrupt_after: tuple[str, ...],
        cache: Any,
        store: Any,
    ) -> None:
        self.builder, self.version = builder, version
        self.interrupt_before, self.interrupt_after = interrupt_before, interrupt_after
        self.cache, self.store = cache, store
        self.step_timeout: float | None = None
        self.child_versions: dict[str, str] = {}
        self.nodes = dict(builder.nodes)
        self.called = {n.name: n.called for n in self.nodes.values() if n.called is not None}
        self._add_handlers()
        self.channels: dict[str, BaseChannel[Any]] = merged_channels(s.channels() for s in builder.schemas.values())
        self.public_name = name or "LangGraph"
        self.name = name or _unique_name(self)

    def _add_handlers(self) -> None:
        for node in list(self.nodes.values()):
            handler, own = self.policies(node).error_handler, node.policies.error_handler
            if handler is None or node.handles:
                continue
            name = f"{HANDLER_PREFIX}{node.name}" if own is not None else DEFAULT_HANDLER
            if name not in self.nodes:
                self.nodes[name] = self._handler(name, handler, node.name)

    def _handler(self, name: str, target: Any, handles: str) -> NodeDeclaration:
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

    def policies(self, node: NodeDeclaration) -> Policies:
        """How a node is run."""
        return node.policies if node.handles else node.policies.over(self.builder.defaults)

    def handler_of(self, node: NodeDeclaration) -> str:
        """The node that takes over when this one has failed, "" for none."""
        if node.handles:
            return ""
        own = f"{HANDLER_PREFIX}{node.name}"
        if own in self.nodes:
            return own
        return DEFAULT_HANDLER if self.policies(node).error_handler is not None else ""

    def branch(self, source: str, name: str) -> BranchDeclaration:
        """A conditional edge; KeyError when there is none."""
        return self.builder.branches[source][name]

    def children(self) -> dict[str, Any]:
        """The compiled graphs that are nodes, by node."""
        return {n.name: n.subgraph for n in self.nodes.values() if n.subgraph is not None}

    def graphs(self) -> dict[str, Any]:
        """The compiled graphs that are nodes or that nodes call, by node."""
        return {name: found for name in self.nodes if (found := self.children().get(name) or self.called.get(name))}

    def targets(self, branch: BranchDeclaration) -> tuple[str, ...]:
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
            if name not in _names or _names[name].builder is program.builder:
                _names[name] = program
                return name
    raise AssertionError("unreachable")


def _code_of(action: Action | None) -> str:
    if action is None:
        return START
    target = action.call
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', type(target).__qualname__)}"
