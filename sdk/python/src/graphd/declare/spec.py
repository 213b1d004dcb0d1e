"""Turns a graph under construction into what the server is told."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.duration_pb2 import Duration

from graphd import codec
from graphd._gen.v1 import graph_pb2 as pb
from graphd.channels import BaseChannel
from graphd.declare.nodes import BranchDeclaration, NodeDeclaration
from graphd.declare.program import Program
from graphd.names import wire
from graphd.values.policy import RetryPolicy

RETRY_MARK = "retry_policy_{}"


def duration(given: float | datetime.timedelta | None) -> Duration | None:
    """Seconds as a message."""
    if given is None:
        return None
    message = Duration()
    message.FromTimedelta(given if isinstance(given, datetime.timedelta) else datetime.timedelta(seconds=given))
    return message


def spec_of(program: Program, *, as_child: bool = False) -> pb.GraphSpec:
    """The description of a graph. A child shows its output keys alone."""
    builder = program.builder
    state = builder.state.channels()
    return pb.GraphSpec(
        name=program.name,
        version=program.version,
        channels=_channels(program.channels),
        input=_some(builder.input.channels(), program.channels),
        output=_some(builder.output.channels() if as_child else state, program.channels),
        nodes=[_node(program, n) for n in program.nodes.values()],
        edges=_edges(builder.order, builder.edges, builder.waiting_edges),
        branches=[_branch(b) for group in builder.branches.values() for b in group.values()],
        interrupt_before=program.interrupt_before,
        interrupt_after=program.interrupt_after,
        step_timeout=duration(program.step_timeout),
        drift=f"DRIFT_{program.drift.upper()}" if program.drift else None,
        drift_ignore=program.drift_ignore,
    )


def _some(chosen: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    return [] if set(chosen) >= set(of) else list(chosen)


def _channels(channels: Mapping[str, BaseChannel[Any]]) -> Iterable[pb.ChannelSpec]:
    for name, channel in channels.items():
        said = channel.declare()
        spec = pb.ChannelSpec(name=name, reducer=said.reducer)
        if said.has_default:
            spec.default_value.CopyFrom(codec.payload(said.default))
        if said.function is not None:
            spec.reducer_name = name
        yield spec


def _node(program: Program, node: NodeDeclaration) -> pb.NodeSpec:
    spec = pb.NodeSpec(
        name=wire(node.name),
        metadata={k: v if isinstance(v, str) else codec.dumps(v) for k, v in node.metadata.items()},
        reads=_some(node.schema.channels(), program.channels),
        deferred=node.deferred,
    )
    spec.policy.CopyFrom(_policy(program, node))
    if node.subgraph is None:
        spec.remote.SetInParent()
        return spec
    child = node.subgraph
    spec.graph.graph, spec.graph.persistence = child.program.name, child.persistence
    return spec


def _policy(program: Program, node: NodeDeclaration) -> pb.PolicySpec:
    policies = program.policies(node)
    retries = policies.retry or ()
    limit = policies.timeout
    return pb.PolicySpec(
        retry=[_retry(r, RETRY_MARK.format(i) if len(retries) > 1 else "") for i, r in enumerate(retries)],
        timeout=duration(limit.run_timeout) if limit else None,
        idle_timeout=duration(limit.idle_timeout) if limit else None,
        error_handler=wire(program.handler_of(node)),
    )


def _retry(policy: RetryPolicy, mark: str) -> pb.RetrySpec:
    return pb.RetrySpec(
        max_attempts=policy.max_attempts,
        initial_interval=duration(policy.initial_interval),
        backoff=policy.backoff_factor,
        max_interval=duration(policy.max_interval),
        no_jitter=not policy.jitter,
        failure_types=[mark] if mark else [],
    )


def _edges(
    order: Iterable[tuple[tuple[str, ...], str]],
    edges: set[tuple[str, str]],
    joins: set[tuple[tuple[str, ...], str]],
) -> Iterable[pb.EdgeSpec]:
    for sources, target in order:
        if (sources, target) in joins or (len(sources) == 1 and (sources[0], target) in edges):
            yield pb.EdgeSpec(sources=sources, target=target)


def _branch(branch: BranchDeclaration) -> pb.BranchSpec:
    return pb.BranchSpec(source=branch.source, name=branch.name, worker_router=branch.name, targets=branch.targets)


__all__ = ["RETRY_MARK", "duration", "spec_of"]
