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
from graphd.names import wire_name
from graphd.values.policy import RetryPolicy

RETRY_MARK = "retry_policy_{}"


def to_duration(given: float | datetime.timedelta | None) -> Duration | None:
    """Seconds as a message."""
    if given is None:
        return None
    message = Duration()
    message.FromTimedelta(given if isinstance(given, datetime.timedelta) else datetime.timedelta(seconds=given))
    return message


def build_spec(program: Program, *, as_child: bool = False) -> pb.GraphSpec:
    """The description of a graph. A child shows its output keys alone."""
    builder = program.builder
    state = builder.state.channels()
    return pb.GraphSpec(
        name=program.name,
        version=program.version,
        channels=_channel_specs(program.channels),
        input=_chosen_names(builder.input.channels(), program.channels),
        output=_chosen_names(builder.output.channels() if as_child else state, program.channels),
        nodes=[_node_spec(program, n) for n in program.nodes.values()],
        edges=_edge_specs(builder.order, builder.edges, builder.waiting_edges),
        branches=[_branch_spec(b) for group in builder.branches.values() for b in group.values()],
        interrupt_before=program.interrupt_before,
        interrupt_after=program.interrupt_after,
        step_timeout=to_duration(program.step_timeout),
        drift=f"DRIFT_{program.drift.upper()}" if program.drift else None,
        drift_ignore=program.drift_ignore,
    )


def _chosen_names(chosen: Mapping[str, Any], of: Mapping[str, Any]) -> list[str]:
    return [] if set(chosen) >= set(of) else list(chosen)


def _channel_specs(channels: Mapping[str, BaseChannel[Any]]) -> Iterable[pb.ChannelSpec]:
    for name, channel in channels.items():
        declared = channel.declare()
        spec = pb.ChannelSpec(name=name, reducer=declared.reducer)
        if declared.has_default:
            spec.default_value.CopyFrom(codec.to_payload(declared.default))
        if declared.function is not None:
            spec.reducer_name = name
        yield spec


def _node_spec(program: Program, node: NodeDeclaration) -> pb.NodeSpec:
    spec = pb.NodeSpec(
        name=wire_name(node.name),
        metadata={k: v if isinstance(v, str) else codec.dumps(v) for k, v in node.metadata.items()},
        reads=_chosen_names(node.schema.channels(), program.channels),
        deferred=node.deferred,
    )
    spec.policy.CopyFrom(_policy_spec(program, node))
    if node.subgraph is None:
        spec.remote.SetInParent()
        return spec
    child = node.subgraph
    spec.graph.graph, spec.graph.persistence = child.program.name, child.persistence
    return spec


def _policy_spec(program: Program, node: NodeDeclaration) -> pb.PolicySpec:
    policies = program.policies_of(node)
    retries = policies.retry or ()
    limit = policies.timeout
    return pb.PolicySpec(
        retry=[_retry_spec(r, RETRY_MARK.format(i) if len(retries) > 1 else "") for i, r in enumerate(retries)],
        timeout=to_duration(limit.run_timeout) if limit else None,
        idle_timeout=to_duration(limit.idle_timeout) if limit else None,
        error_handler=wire_name(program.handler_of(node)),
    )


def _retry_spec(policy: RetryPolicy, mark: str) -> pb.RetrySpec:
    return pb.RetrySpec(
        max_attempts=policy.max_attempts,
        initial_interval=to_duration(policy.initial_interval),
        backoff=policy.backoff_factor,
        max_interval=to_duration(policy.max_interval),
        no_jitter=not policy.jitter,
        failure_types=[mark] if mark else [],
    )


def _edge_specs(
    order: Iterable[tuple[tuple[str, ...], str]],
    edges: set[tuple[str, str]],
    joins: set[tuple[tuple[str, ...], str]],
) -> Iterable[pb.EdgeSpec]:
    for sources, target in order:
        if (sources, target) in joins or (len(sources) == 1 and (sources[0], target) in edges):
            yield pb.EdgeSpec(sources=sources, target=target)


def _branch_spec(branch: BranchDeclaration) -> pb.BranchSpec:
    return pb.BranchSpec(source=branch.source, name=branch.name, worker_router=branch.name, targets=branch.targets)


__all__ = ["RETRY_MARK", "build_spec", "to_duration"]
