"""A run that is drained where it comes to a breakpoint: the breakpoint wins.

The server has cancelled the run, and has kept that no caller has passed the breakpoint. A run
without input stops there before it does anything, and who goes on then passes it.
"""

from __future__ import annotations

import uuid

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import run_pb2
from graphd.client.connection import GraphConnection
from graphd.client.snapshots import BREAKPOINT
from graphd.runtime.local_runs import LocalRun
from graphd.transport.server import retry_read


def is_drained_at_breakpoint(connection: GraphConnection, run: run_pb2.Run, local: LocalRun) -> bool:
    """The run was cancelled for a drain, and had come to a breakpoint."""
    drained = local.control is not None and local.control.drain_requested
    if not drained or run.state != run_pb2.RUN_STATE_CANCELLED:
        return False
    wanted = f'state = "CANCELLED" AND reason = "{BREAKPOINT}" AND run_id = "{run.run_id}"'
    request = ins.ListInterruptsRequest(thread_id=run.thread_id, filter=wanted, page_size=1)
    return bool(retry_read(connection.server.stubs.interrupts.ListInterrupts, request).interrupts)


def build_pause_request(request: gs.StreamRequest | gs.ResumeRequest, run: run_pb2.Run) -> gs.StreamRequest:
    """The run that stops at the breakpoint, with the settings of the run before it."""
    given = request.resume.settings if isinstance(request, gs.ResumeRequest) else request.run
    spec = run_pb2.RunSpec(
        thread_id=run.thread_id,
        graph=run.graph,
        graph_version=run.graph_version,
        interrupt_before=given.interrupt_before,
        interrupt_after=given.interrupt_after,
        step_limit=given.step_limit,
    )
    if given.HasField("context"):
        spec.context.CopyFrom(given.context)
    return gs.StreamRequest(run=spec, filter=request.filter, request_id=uuid.uuid4().hex)
