"""What a call does about a refusal of its request: some requests can be changed so that they are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.client.connection import GraphConnection
from graphd.client.run_request import DISCARD_QUESTIONS, REPLACE_SETTINGS
from graphd.errors import GraphdError, NothingToResumeError, UnknownInterruptError
from graphd.transport.errors import EmptyInput


@dataclass
class RefusedRequest:
    """A request that was refused, perhaps again."""

    connection: GraphConnection
    request: gs.StreamRequest | gs.ResumeRequest
    gives_settings: bool
    _first: GraphdError | None = field(default=None, init=False)
    _insists: bool = field(default=False, init=False)

    def recover_from(self, error: GraphdError) -> GraphdError | None:
        """What to raise, or None after the request was changed to a better one."""
        if self._first is not None:
            return self._first
        request = self.request
        if isinstance(request, gs.ResumeRequest) and "breakpointIds" in error.metadata:
            # A breakpoint is no question: LangGraph goes on and drops the answer.
            self._first = error
            request.resume.ClearField("single")
            request.resume.ClearField("responses")
            request.request_id += ".b"
            return None
        if self._does_without(error) or self._discards_now(error):
            return None
        if isinstance(request, gs.ResumeRequest):
            return _name_unknown(error, [r.interrupt_id for r in request.resume.responses])
        if not request.run.WhichOneof("start") and "input" in error.violations:
            text = "Received no input for __start__"
            return EmptyInput(text, reason=error.reason, code=error.code, violations=error.violations)
        return error

    def _does_without(self, error: GraphdError) -> bool:
        """Whether the request goes without a right from now on that the caller has not got."""
        request = self.request
        if error.reason != "ACCESS_DENIED" or self._insists:
            return False
        right = error.metadata.get("rule", "").removeprefix("right: ")
        if right == DISCARD_QUESTIONS and not isinstance(request, gs.ResumeRequest):
            request.run.ClearField("open_interrupts")
        elif right == REPLACE_SETTINGS and isinstance(request, gs.ResumeRequest) and not self.gives_settings:
            request.resume.ClearField("settings")
        else:
            return False
        self.connection.server.missing_rights.add(right)
        request.request_id += ".w"
        return True

    def _discards_now(self, error: GraphdError) -> bool:
        """Whether the request drops open questions from now on: there are some, and it was to do without the right."""
        policy = run_pb2.OPEN_INTERRUPT_POLICY_DISCARD
        request = self.request
        if error.reason != "THREAD_INTERRUPTED" or isinstance(request, gs.ResumeRequest):
            return False
        if request.run.open_interrupts == policy:
            return False
        request.run.open_interrupts = policy
        request.request_id += ".d"
        self._insists = True
        return True


def build_join(request: gs.StreamRequest | gs.ResumeRequest, error: GraphdError) -> gs.WatchRequest | None:
    """The request that follows the active run, which does already what a call wants: to go on with what is left.

    A program that was killed and starts again makes such a call while its run still waits for a worker. None is
    returned for calls that bring something of their own.
    """
    active = error.metadata.get("activeRunId", "")
    if error.reason != "THREAD_BUSY" or not active or isinstance(request, gs.ResumeRequest):
        return None
    run = request.run
    brings = run.WhichOneof("start") or run.HasField("update") or run.goto_targets
    if brings or run.interrupt_before or run.interrupt_after:
        return None
    watch = gs.WatchRequest(thread_id=run.thread_id, run_id=active, filter=request.filter, follow=True)
    watch.now.SetInParent()
    return watch


def _name_unknown(error: GraphdError, answered: Sequence[str]) -> GraphdError:
    """The refusal of answers, with the answered questions that are not open."""
    if error.reason == "THREAD_NOT_FOUND":
        text = "the thread has never run, so nothing waits for an answer"
        error = NothingToResumeError(text, reason=error.reason, code=error.code, metadata=error.metadata)
    if isinstance(error, UnknownInterruptError) and error.reason == "not_pending" and answered:
        error.interrupt_ids = tuple(sorted({*answered} - {*error.pending_ids}))
    return error


__all__ = ["RefusedRequest", "build_join"]
