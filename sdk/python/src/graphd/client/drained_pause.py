"""A run that is drained where it stops anyway: that it stops wins.

At a breakpoint the server has cancelled the run, and has kept that no caller has passed it. A run
without input stops there before it does anything, and who goes on then passes it. Where nothing is
due any more, or a node has failed, the run has ended as it would have without the drain.
"""

from __future__ import annotations

import uuid

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import interrupt_service_pb2 as ins
from graphd._gen.v1 import run_pb2, thread_pb2
from graphd.client.connection import GraphConnection
from graphd.client.failures import CUT_OFF
from graphd.client.snapshots import BREAKPOINT
from graphd.runtime.local_runs import LocalRun
from graphd.transport.server import retry_read


def is_drained(run: run_pb2.Run, local: LocalRun) -> bool:
    """The run was cancelled for a drain."""
    asked = local.control is not None and local.control.drain_requested
    return asked and run.state == run_pb2.RUN_STATE_CANCELLED


def settle_drained_run(run: run_pb2.Run, state: thread_pb2.StateSnapshot | None) -> run_pb2.Run:
    """The run as it has ended without the drain, by the state after it; the same run where the drain has stopped it."""
    if state is None or state.run_id != run.run_id:
        return run
    failures = (task.failure for task in state.tasks if task.HasField("failure"))
    failure = next((one for one in failures if one.reason not in CUT_OFF), None)
    if failure is None and (state.next or state.tasks):
        return run
    settled = run_pb2.Run()
    settled.CopyFrom(run)
    settled.ClearField("failure")
    settled.state = run_pb2.RUN_STATE_SUCCEEDED
    if failure is not None:
        settled.state = run_pb2.RUN_STATE_FAILED
        settled.failure.CopyFrom(failure)
    return settled


def is_drained_at_breakpoint(connection: GraphConnection, run: run_pb2.Run, local: LocalRun) -> bool:
    """The run was cancelled for a drain, and had come to a breakpoint."""
    if not is_drained(run, local):
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
