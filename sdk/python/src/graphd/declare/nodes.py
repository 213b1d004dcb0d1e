"""What a graph under construction consists of."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints

from graphd.declare.actions import Action
from graphd.declare.calls import called_graph
from graphd.declare.compiled_graph import CompiledGraph
from graphd.declare.schema import Schema
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy


@dataclass
class Policies:
    """How a node is run; None falls back to the defaults of the graph."""

    retry: tuple[RetryPolicy, ...] | None = None
    cache: CachePolicy | None = None
    timeout: TimeoutPolicy | None = None
    error_handler: Any = None

    def with_defaults(self, defaults: Policies) -> Policies:
        """These policies, completed by the defaults."""
        return Policies(
            retry=self.retry if self.retry is not None else defaults.retry,
            cache=self.cache or defaults.cache,
            timeout=self.timeout or defaults.timeout,
            error_handler=self.error_handler or defaults.error_handler,
        )


@dataclass
class NodeDeclaration:
    """One node."""

    name: str
    target: Any
    action: Action | None
    schema: Schema
    policies: Policies
    deferred: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    destinations: Mapping[str, str | None] = field(default_factory=dict)
    handles: str = ""

    @property
    def subgraph(self) -> Any:
        """The compiled graph that is the node, None for other nodes."""
        return self.target if self.action is None else None

    @property
    def called(self) -> Any:
        """The compiled graph that the code of the node calls, None without one."""
        if self.action is None:
            return None
        return self.target if isinstance(self.target, CompiledGraph) else called_graph(self.target)


@dataclass
class BranchDeclaration:
    """One conditional edge."""

    source: str
    name: str
    action: Action
    paths: Mapping[Any, str] | None
    targets: tuple[str, ...]


def retry_policies(given: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...] | None:
    """One policy or several, as a tuple."""
    if given is None:
        return None
    return (given,) if isinstance(given, RetryPolicy) else tuple(given)


def label_destinations(destinations: dict[str, str] | tuple[str, ...]) -> dict[str, str | None]:
    """Where a node may go, each with what to write on the arrow."""
    return {**destinations} if isinstance(destinations, dict) else dict.fromkeys(destinations)


def paths_of(path: Any, given: dict[Hashable, str] | list[str] | None) -> dict[Any, str] | None:
    """Where the results of a router lead: as given, or as its annotation says; None if neither does."""
    if isinstance(given, dict):
        return dict(given)
    if isinstance(given, (list, tuple)):
        return {name: name for name in given}
    try:
        returned = get_type_hints(path if hasattr(path, "__annotations__") else type(path).__call__).get("return")
    except Exception:  # unresolvable names say nothing
        return None
    if get_origin(returned) is Literal:
        return {name: name for name in get_args(returned)}
    return None
