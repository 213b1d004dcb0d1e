"""Stops the run of a call that its caller leaves."""

from __future__ import annotations

import logging
from typing import Any

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.errors import GraphdError
from graphd.runtime.local_runs import LocalRun, mark_left
from graphd.transport.server import Server, acall_unary, call_unary

_log = logging.getLogger("graphd.client")


class RunStop:
    """What is known of a run under way, so that it, and no other run of its thread, can be stopped.

    Its questions stay open, and its answers are kept, as in LangGraph.

    A caller may leave before it knows the id of the run, and a cancel may come to the server before what has begun
    the run. So the request is sent again: it begins nothing twice, and is answered when its run is stored.
    """

    __slots__ = ("_local", "_request", "_server", "_stopped", "_thread", "has_ended", "is_joined", "is_sent", "run_id")

    def __init__(
        self, server: Server, thread: str, request: gs.StreamRequest | gs.ResumeRequest, local: LocalRun
    ) -> None:
        self._server, self._thread, self._request, self._local = server, thread, request, local
        self.run_id, self.is_sent, self.has_ended = "", False, False
        self.is_joined = False
        self._stopped: run_pb2.Run | None = None

    @property
    def is_needed(self) -> bool:
        """The run may be under way, and this call has begun it."""
        return self.is_sent and not self.has_ended and not self.is_joined

    def mark_left(self) -> None:
        """Tasks of the run that are on their way here, or wait for its reader, are not to begin: it is over."""
        if self._stopped is not None and self._stopped.state != run_pb2.RUN_STATE_INTERRUPTED:
            mark_left(self._server.target, self.run_id)

    def stop_run(self, reason: str) -> None:
        """Stops the run, and waits for that. What keeps it from being stopped is logged."""
        graphs = self._server.stubs.graphs
        try:
            self.run_id = self.run_id or call_unary(*self._repeat_request(graphs)).run_id
            self._stopped = call_unary(graphs.CancelRun, self._build_cancel(reason))
        except GraphdError as problem:
            self._log_problem(problem)

    async def astop_run(self, reason: str) -> None:
        """Like stop_run, on the running loop."""
        graphs = self._server.astubs.graphs
        try:
            self.run_id = self.run_id or (await acall_unary(*self._repeat_request(graphs))).run_id
            self._stopped = await acall_unary(graphs.CancelRun, self._build_cancel(reason))
        except GraphdError as problem:
            self._log_problem(problem)

    def _repeat_request(self, graphs: Any) -> tuple[Any, gs.StartRunRequest | gs.ResumeRunRequest]:
        """The call whose answer is the run of the request."""
        request = self._request
        if isinstance(request, gs.ResumeRequest):
            return graphs.ResumeRun, gs.ResumeRunRequest(resume=request.resume, request_id=request.request_id)
        return graphs.StartRun, gs.StartRunRequest(run=request.run, request_id=request.request_id)

    def _build_cancel(self, reason: str) -> gs.CancelRunRequest:
        self._local.cancelled = True
        pause = gs.CancelRunRequest.ACTION_PAUSE
        return gs.CancelRunRequest(thread_id=self._thread, run_id=self.run_id, action=pause, reason=reason, wait=True)

    def _log_problem(self, problem: GraphdError) -> None:
        _log.info("the run that thread %s was left with is not stopped: %s", self._thread, problem)


__all__ = ["RunStop"]
