"""A worker's session with a server: connect, run what comes, reconnect."""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import grpc

from graphd._gen.v1 import worker_service_pb2 as ws
from graphd.declare.manifest import Manifest
from graphd.declare.program import Program
from graphd.errors import GraphdError, ServerUnavailableError, UnauthenticatedError
from graphd.security import Target
from graphd.transport.errors import to_graphd_error
from graphd.values.worker_limits import WorkerLimits
from graphd.worker.attempt import Attempt
from graphd.worker.capacity import Capacity
from graphd.worker.connection import Dialer, WorkerConnection
from graphd.worker.handshake import LONGEST_PAUSE, build_hello, ends_session, is_refusal, read_intervals, read_versions
from graphd.worker.lease_certainty import LeaseCertainty
from graphd.worker.outbox import BATCHES, Outbox
from graphd.worker.result_stream import FEATURE
from graphd.worker.runner import Runner
from graphd.worker.tasks import SessionTasks

log = logging.getLogger("graphd.worker")

_TICK = 0.02  # seconds between two looks while there is something to tell
_IDLE_TICK = 0.5  # and while there is nothing
_SILENT_BEATS = 3
_PATIENCE = 2.0  # seconds a server may take to say welcome, or to take a goodbye, however short its beats are


def _process_ends() -> bool:
    """Whether gRPC's threads can't begin any more. A call without them never ends, and closing its channel neither."""
    ending = getattr(threading, "_SHUTTING_DOWN", False) or not threading.main_thread().is_alive()
    return sys.version_info >= (3, 12) and ending


class Server(Dialer, Protocol):
    """The server of a session."""

    @property
    def target(self) -> Target:
        """Where it is, and how it is called."""


class Session:
    """Serves the nodes of some programs until it is closed."""

    def __init__(
        self,
        server: Server,
        manifest: Manifest,
        programs: Mapping[str, Program],
        worker_id: str = "",
        limits: WorkerLimits | None = None,
        store: Any = None,
    ) -> None:
        self.target, self.manifest, self.programs = server.target, manifest, dict(programs)
        self.store = store
        self.worker_id = worker_id or f"py-{uuid.uuid4().hex}"
        self.versions: dict[str, str] = {}
        self._connection = WorkerConnection(server)
        self._ready, self._closed, self._over = threading.Event(), threading.Event(), threading.Event()
        self._failure: GraphdError | None = None
        self._problem: GraphdError | None = None  # of the latest stream
        self._welcomed = False
        self._outbox = Outbox()
        limits = limits or WorkerLimits()
        self._kept_bytes = limits.kept_bytes
        self._capacity = Capacity(limits)
        self._runner = Runner(self.target, self._capacity.threads)
        self._tasks = SessionTasks(self.programs, self, self._connection, self._runner, self._closed)
        self._beat, self._beat_due, self._heard = 1.0, False, time.monotonic()
        self._longest_pause = LONGEST_PAUSE
        self._certainty = LeaseCertainty()
        self._threads = [
            threading.Thread(target=self._serve_streams, name="graphd-worker", daemon=True),
            threading.Thread(target=self._watch_connection, name="graphd-worker-tick", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.target.address

    def wait_ready(self, timeout: float) -> dict[str, str]:
        """Waits for the welcome; returns the version of each graph."""
        if not self._ready.wait(timeout):
            text = f"no graphd answered at {self.address} within {timeout:g}s; is `graphd serve` running there?"
            if self._problem is not None:
                text += f" The last error: {self._problem}"
            if ":" not in self.address:
                text += f". The address names no port: want host:port, as in {self.address}:7700"
            raise ServerUnavailableError(text, code="UNAVAILABLE")
        if self._failure is not None:
            raise self._failure
        return self.versions

    def wait_closed(self) -> None:
        """Waits until the session is closed, or the server wants it no more:
        then the error says why."""
        # Not for ever at once: if another thread gets a signal, this one has to
        # look up to see it.
        while not self._over.wait(0.5):
            pass
        if self._failure is not None and not self._closed.is_set():
            raise self._failure

    @property
    def closed(self) -> bool:
        """It was closed, here or by the server."""
        return self._over.is_set()

    @property
    def has_left(self) -> bool:
        """It was closed here."""
        return self._closed.is_set()

    def close(self, grace: float = 0.0) -> None:
        """Takes nothing new, lets running tasks finish for a while, leaves."""
        if self._closed.is_set():
            return
        self.send_request(ws.ConnectRequest(goodbye=ws.Goodbye(reason="the worker leaves")))
        deadline = time.monotonic() + grace
        while self._tasks.leases() and time.monotonic() < deadline:
            self._closed.wait(0.01)
        self._closed.set()
        self._tasks.progress.wake()
        self._outbox.close()
        self._runner.close()
        self._wait_for_stream_end()
        self._connection.close()
        self._over.set()

    def _wait_for_stream_end(self) -> None:
        """Waits until the server has taken the goodbye: until then it gives this worker tasks, and for those of a
        connection that breaks it waits as long as a lease lasts."""
        streams = self._threads[0]
        if threading.current_thread() is not streams:
            streams.join(_PATIENCE)

    def send_request(self, request: ws.ConnectRequest) -> None:
        if request.update.HasField("emit"):
            self._tasks.results.record_traffic()
        self._outbox.put(request)

    def flush_soon(self, attempt: Attempt) -> None:
        self._tasks.progress.add_emitting(attempt)

    def record_memo(self, request: ws.RecordMemoRequest) -> ws.RecordMemoResponse:
        response: ws.RecordMemoResponse = self._connection.call_until_answered(
            "RecordMemo", request, lambda: self._tasks.is_gone(request.lease_token)
        )
        return response

    @property
    def is_sure(self) -> bool:
        return self._certainty.is_sure

    def ask_leases(self) -> None:
        self._beat_due = True
        self.send_request(ws.ConnectRequest(credit=self._capacity.current_credit()))  # wakes the stream

    def confirm_lease(self, attempt: Attempt) -> None:
        self._certainty.wait_until(
            lambda: self.is_sure and not attempt.undecided, lambda: attempt.is_gone or self._closed.is_set()
        )
        if attempt.lost:
            raise GraphdError("the task was given to another worker", reason="TASK_LEASE_LOST")
        if attempt.ended:
            raise GraphdError("the task has ended, and its code goes on: await all that a node begins")
        if self._closed.is_set():
            raise GraphdError("this worker has left; another one runs the task again")

    def call_graph(self, attempt: Attempt, request: ws.CallGraphRequest) -> ws.CallGraphResponse:
        request.lease_token = attempt.token
        self._change_blocked(+1)  # a task that waits must not keep its graph from running
        try:
            response: ws.CallGraphResponse = self._connection.call_until_answered(
                "CallGraph", request, lambda: attempt.is_gone
            )
            return response
        finally:
            self._change_blocked(-1)

    def _change_blocked(self, by: int) -> None:
        credit = self._capacity.change_blocked(by)
        self._runner.resize_pool(self._capacity.threads)
        self.send_request(ws.ConnectRequest(credit=credit))

    def begin_without_thread(self, size: int) -> None:
        self._tell_credit(self._capacity.begin_without_thread(size))

    def end_without_thread(self, size: int) -> None:
        self._tell_credit(self._capacity.end_without_thread(size))

    def _tell_credit(self, credit: ws.Credit | None) -> None:
        if credit is not None:
            self.send_request(ws.ConnectRequest(credit=credit))

    # The stream.

    def _serve_streams(self) -> None:
        pause = 0.05
        while not self._closed.is_set() and not _process_ends():
            try:
                self._outbox = Outbox()
                self._tasks.kept.clear()
                self._heard = time.monotonic()
                for response in self._connection.stub.Connect(self._stream_requests(self._outbox)):
                    pause, self._heard = 0.05, time.monotonic()
                    self._handle_response(response)
                problem: GraphdError | None = None
            except grpc.RpcError as error:
                problem = to_graphd_error(error)
            except UnauthenticatedError as error:  # there is no token to send
                problem = error
            except ValueError as error:  # the connection was given up just now
                problem = GraphdError(str(error))
            except Exception as error:  # without this thread the worker would be there and do nothing
                log.exception("a message of graphd at %s could not be handled; connecting again", self.address)
                problem, pause = GraphdError(str(error)), self._longest_pause
            self._certainty.record_disconnect()
            self._outbox.close()
            self._tasks.deliver_unanswered()
            if self._closed.is_set() or self._is_final(problem):
                return
            self._closed.wait(pause)
            pause = min(pause * 2, self._longest_pause)
            self._connection.renew_certificates()

    def _is_final(self, problem: GraphdError | None) -> bool:
        before, self._problem = self._problem, problem
        if problem is None:
            return False
        if ends_session(problem, is_welcomed=self._welcomed):
            log.error("graphd at %s does not take this worker: %s", self.address, problem)
            self._failure = problem
            self._ready.set()
            self._over.set()
            return True
        if is_refusal(problem) and str(problem) != str(before):
            log.error("graphd at %s refuses this worker, which asks again until it is taken: %s", self.address, problem)
        log.debug("session with %s broke: %s", self.address, problem)
        return False

    def _stream_requests(self, outbox: Outbox) -> Iterator[ws.ConnectRequest]:
        self._certainty.record_question(0)
        hello = build_hello(
            self.worker_id, self.manifest, self._tasks.leases(), self._capacity.current_credit(), self._kept_bytes
        )
        yield ws.ConnectRequest(hello=hello)
        number, last = 0, time.monotonic()
        while outbox is self._outbox:  # a goodbye is sent after the session was closed
            try:
                request = outbox.take(max(0.0, last + self._beat - time.monotonic()))
                if request is None:
                    return
                yield request
            except queue.Empty:
                pass
            if self._beat_due or time.monotonic() >= last + self._beat:  # beats don't wait for a lull
                self._beat_due = False
                number, last = number + 1, time.monotonic()
                self._certainty.record_question(number)
                yield ws.ConnectRequest(beat=ws.Beat(number=number, running=self._tasks.leases()))

    def _handle_response(self, response: ws.ConnectResponse) -> None:
        match response.WhichOneof("kind"):
            case "batch":
                for part in response.batch.responses:
                    self._handle_response(part)
            case "welcome":
                self._handle_welcome(response.welcome)
            case "task":
                self._tasks.begin_task(response.task)
            case "completed":
                self._tasks.handle_completed(response.completed)
            case "cancel":
                self._tasks.stop_task(response.cancel.lease_token, lost=False)
            case "renewed":
                self._tasks.mark_renewed(response.renewed.token)
            case "beat_ack":
                for token in response.beat_ack.lost:
                    self._tasks.stop_task(token, lost=True)
                self._tasks.mark_undecided(response.beat_ack.undecided)
                self._certainty.record_answer(response.beat_ack.number)

    def _handle_welcome(self, welcome: ws.Welcome) -> None:
        self._welcomed, self._problem = True, None
        self._tasks.largest = welcome.max_result_bytes or self._tasks.largest
        intervals = read_intervals(welcome)
        self._beat, self._longest_pause = intervals.beat, intervals.longest_pause
        for token in welcome.lost:
            self._tasks.stop_task(token, lost=True)
        self._tasks.mark_undecided(welcome.undecided)
        self._certainty.set_intervals(intervals.beat, intervals.lease)
        self._certainty.record_answer(0)
        # Wakes who waits for the next beat: it may be due.
        self.send_request(ws.ConnectRequest(credit=self._capacity.current_credit()))
        if BATCHES in welcome.features:
            self._outbox.allow_batches(welcome.max_message_bytes)
        if FEATURE in welcome.features:
            self._tasks.results.open_stream(self._outbox.put)
        versions, refusal = read_versions(welcome)
        self.versions.update(versions)
        self._failure = refusal or self._failure
        self._ready.set()

    def _watch_connection(self) -> None:
        while not self._closed.wait(_TICK):
            if not self._runner.holds_tasks:
                self._tasks.progress.wait_for_news(_IDLE_TICK)
            now = time.monotonic()
            if now - self._heard > max(_SILENT_BEATS * self._beat, _PATIENCE):
                silence = now - self._heard
                log.warning("nothing was heard of graphd at %s for %.1fs; connecting again", self.address, silence)
                self._heard = now
                self._connection.reconnect()
            self._tasks.progress.send()
            self._runner.check_gates()
