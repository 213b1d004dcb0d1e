"""The tasks that a session has taken, and how their results get to the server."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.errors import GraphdError
from graphd.transport.errors import reason_of
from graphd.worker import outcome
from graphd.worker.attempt import Attempt, AttemptSession
from graphd.worker.connection import WorkerConnection
from graphd.worker.kept_values import KeptValues
from graphd.worker.progress import Progress
from graphd.worker.result_stream import ResultStream
from graphd.worker.runner import Job, Runner

log = logging.getLogger("graphd.worker")


class SessionTasks:
    """Begins tasks, and keeps each until its result is taken. Safe to use from
    several threads."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        session: AttemptSession,
        connection: WorkerConnection,
        runner: Runner,
        closed: threading.Event,
    ) -> None:
        self.largest = 4 << 20  # bytes of a result
        self.results = ResultStream()
        self.progress = Progress()
        self.kept = KeptValues()
        self._programs, self._session, self._connection, self._runner, self._closed = (
            programs,
            session,
            connection,
            runner,
            closed,
        )
        self._lock = threading.Lock()
        self._attempts: dict[bytes, Attempt] = {}

    def leases(self) -> list[bytes]:
        """The tokens of the tasks that are here."""
        # No lock: a session is also closed when its graph is garbage, and the
        # collector may run in a thread that holds it.
        return list(self._attempts)

    def is_gone(self, token: bytes) -> bool:
        """A task has ended, or the server has said that it is here no more."""
        attempt = self._attempts.get(token)
        return attempt is None or attempt.is_gone

    def begin_task(self, assignment: pb.TaskAssignment) -> None:
        """Runs a task."""
        self._runner.start_job(self._accept_task(assignment))

    def _accept_task(self, assignment: pb.TaskAssignment) -> Job | None:
        program = self._programs.get(assignment.graph)
        kept, missing = self.kept.complete(assignment)  # of a task that is refused, too: the server counts on it
        if program is None:
            refusal = ws.Nack(lease_token=assignment.lease.token, reason=f"graph {assignment.graph!r} is not served")
            self._session.send_request(ws.ConnectRequest(nack=refusal))
            return None
        if missing:
            lacking = ws.Nack(lease_token=assignment.lease.token, reason="values are missing", missing=missing)
            self._session.send_request(ws.ConnectRequest(nack=lacking))
            return None
        attempt = Attempt(assignment, self._session, kept)
        with self._lock:
            self._attempts[attempt.token] = attempt
        self.progress.add_begun(attempt)
        return Job(attempt, self._runner.choose_program(assignment, program), self._complete_attempt, self._send_result)

    def _complete_attempt(self, attempt: Attempt, result: pb.TaskResult) -> Job | None:
        """Hands over a result; returns the next task if the answer has one."""
        request = self._build_completion(attempt, result)
        if not attempt.lost and (under_way := self.results.send_result(attempt, request)):
            return under_way.wait_for_next()
        return self._deliver_result(attempt, request)

    def _send_result(self, attempt: Attempt, result: pb.TaskResult) -> None:
        """Hands over a result and does not wait: a thread does where that is necessary."""
        request = self._build_completion(attempt, result)
        if attempt.lost or not self.results.send_result(attempt, request, has_thread=False):
            self._runner.submit_delivery(lambda: self._deliver_result(attempt, request))

    def _build_completion(self, attempt: Attempt, result: pb.TaskResult) -> ws.CompleteTaskRequest:
        if attempt.stopped and result.failed.type == "NodeCancelledError":
            result = pb.TaskResult(cancelled=pb.TaskCancelled())
        if (size := result.ByteSize()) > self.largest:
            result = outcome.build_too_large(size, self.largest)
        emit, sent = attempt.take_events()
        return ws.CompleteTaskRequest(
            lease_token=attempt.token,
            result=result,
            emit=emit,
            emitted=sent,
            take_next=not self._closed.is_set(),
        )

    def _deliver_result(self, attempt: Attempt, request: ws.CompleteTaskRequest) -> Job | None:
        """Hands over a result by a call, however long that takes."""
        try:
            if not attempt.lost:
                response: ws.CompleteTaskResponse = self._connection.call_until_answered(
                    "CompleteTask", request, lambda: self._learn_loss(attempt)
                )
                if response.HasField("next"):
                    return self._accept_task(response.next)
        except GraphdError as error:
            self._report_not_taken(attempt, error)
        finally:
            self._forget_attempt(attempt)
        return None

    def _forget_attempt(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.pop(attempt.token, None)
        attempt.end()

    def _learn_loss(self, attempt: Attempt) -> bool:
        """Whether a refused attempt is lost. The stream says it at once: the process may wait."""
        if not attempt.lost:
            self._session.ask_leases()
        return attempt.lost

    def _report_not_taken(self, attempt: Attempt, error: GraphdError) -> None:
        node = attempt.assignment.node
        if reason_of(error) == "TASK_LEASE_LOST":
            log.debug("the result of %s was not taken: %s", node, error)
            return
        if self._closed.is_set():
            log.warning("this worker has left before the result of %s was taken; another one runs it again", node)
            return
        log.error("the result of %s was not taken: %s", node, error)
        # Silence would have the task run again, by one worker after the other.
        request = ws.CompleteTaskRequest(lease_token=attempt.token, result=outcome.build_not_taken(error))
        with contextlib.suppress(GraphdError):
            self._connection.call_until_answered("CompleteTask", request, lambda: attempt.lost)

    def handle_completed(self, completed: ws.Completed) -> None:
        """The server has taken a result that went on the stream, or wants it by a call."""
        result = self.results.take_answered(completed.lease_token)
        if result is None:
            return
        if completed.reason:  # a call tells for good
            self._runner.submit_delivery(lambda: self._deliver_result(result.attempt, result.request))
            return
        self._forget_attempt(result.attempt)
        job = self._accept_task(completed.response.next) if completed.response.HasField("next") else None
        if not result.set_next(job):
            self._runner.start_job(job)
        elif job is not None:
            time.sleep(0)  # lets the node begin before this thread waits for the next message

    def stop_task(self, token: bytes, *, lost: bool) -> None:
        """Ends a task: its run is over, or it was given to another worker."""
        with self._lock:
            attempt = self._attempts.get(token)
        if attempt is not None:
            attempt.lost, attempt.stopped = attempt.lost or lost, True
            attempt.cancel()

    def mark_undecided(self, tokens: Iterable[bytes]) -> None:
        """The server has said of all tasks that are here which of them may still
        be given to another worker."""
        waiting = set(tokens)
        for attempt in list(self._attempts.values()):
            attempt.undecided = attempt.token in waiting

    def mark_renewed(self, token: bytes) -> None:
        """A task stays here."""
        with self._lock:
            attempt = self._attempts.get(token)
        if attempt is not None:
            attempt.undecided = False

    def deliver_unanswered(self) -> None:
        """The stream has ended: results that it did not answer go by a call."""
        for left in self.results.close_stream():
            self._runner.submit_delivery(lambda left=left: self._deliver_result(left.attempt, left.request))  # type: ignore[misc]
