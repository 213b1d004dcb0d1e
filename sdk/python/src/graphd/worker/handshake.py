"""What a worker and a server tell each other when a stream begins, and which refusals end the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.manifest import Manifest
from graphd.errors import AccessDeniedError, GraphdError, InvalidGraphError, TLSError, UnauthenticatedError
from graphd.transport.errors import reason_of
from graphd.worker.outbox import BATCHES

PROTOCOL = 1
LONGEST_PAUSE = 5.0  # seconds before another try to connect; less if leases are short: they end without their worker
_FINAL = {
    "PROTOCOL_MISMATCH",
    "INVALID_FIELD",
    "FEATURE_DISABLED",
    "WORKER_ID_TAKEN",  # the worker of another principal has this id
    "WORKER_REPLACED",  # another process uses this worker id, e.g. after a fork
}
# Final for a worker that the server has not taken yet: its configuration is wrong. Later it waits
# for credentials to be put in order: tokens and certificates are replaced while workers run.
_REFUSED = (UnauthenticatedError, AccessDeniedError, TLSError)


class Intervals(NamedTuple):
    """The times of a session, in seconds."""

    beat: float
    """Between two beats."""
    lease: float
    """After which the server gives the tasks of a silent worker away."""
    longest_pause: float
    """Before another try to connect."""


def build_hello(
    worker_id: str, offered: Manifest, leases: Sequence[bytes], credit: ws.Credit, kept_bytes: int
) -> ws.Hello:
    """What a worker says first: what it offers, the tasks that it has, how many it takes, and the bytes of values that
    it keeps for later tasks."""
    manifest = pb.WorkerManifest(
        deployment="python",
        min_protocol=PROTOCOL,
        max_protocol=PROTOCOL,
        features=["memo", "scopes", "call", "drift", BATCHES],
        graphs=offered.graphs,
        nodes=offered.nodes,
    )
    return ws.Hello(worker_id=worker_id, manifest=manifest, held_leases=leases, credit=credit, kept_bytes=kept_bytes)


def read_intervals(welcome: ws.Welcome) -> Intervals:
    """The times that the server wants."""
    beat = max(0.05, welcome.beat_interval.ToTimedelta().total_seconds() or 1.0)
    lease = welcome.lease_ttl.ToTimedelta().total_seconds() or 3 * beat
    return Intervals(beat, lease, min(LONGEST_PAUSE, max(0.05, lease / 8)))


def read_versions(welcome: ws.Welcome) -> tuple[dict[str, str], InvalidGraphError | None]:
    """The version of each graph that the server has taken, and why it has not taken the last that it has not."""
    versions: dict[str, str] = {}
    refusal: InvalidGraphError | None = None
    for graph in welcome.graphs:
        if graph.problems:
            problems = {p.field: p.description for p in graph.problems}
            text = "; ".join(f"{field}: {said}" if field else said for field, said in problems.items())
            refusal = InvalidGraphError(f"graph {graph.graph!r}: {text}", reason="INVALID_GRAPH", violations=problems)
        else:
            versions[graph.graph] = graph.version
    return versions, refusal


def is_refusal(problem: GraphdError) -> bool:
    """The server does not accept the worker for its credentials."""
    return isinstance(problem, _REFUSED)


def ends_session(problem: GraphdError, *, is_welcomed: bool) -> bool:
    """It is of no use to connect again."""
    final = reason_of(problem) in _FINAL or problem.code == "UNIMPLEMENTED"
    return final or (is_refusal(problem) and not is_welcomed)


__all__ = [
    "LONGEST_PAUSE",
    "PROTOCOL",
    "Intervals",
    "build_hello",
    "ends_session",
    "is_refusal",
    "read_intervals",
    "read_versions",
]
