"""A worker's session with a server: connect, run what comes, reconnect."""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import grpc

from graphd._gen.v1 import graph_pb2
from graphd._gen.v1 import worker_service_pb2 as ws
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.program import Program
from graphd.errors import GraphdError, InvalidGraphError, ServerUnavailableError
from graphd.transport.errors import describe, reason_of
from graphd.worker.attempt import Attempt
from graphd.worker.certainty import Certainty
from graphd.worker.results import FEATURE
from graphd.worker.runner import Runner
from graphd.worker.tasks import Tasks
from graphd.worker.wire import Wire

log = logging.getLogger("graphd.worker")

SLOTS = 256
PROTOCOL = 1
_TICK = 0.02
_SILENT_BEATS = 3
_LONGEST_PAUSE = 5.0  # seconds before another try to connect; less if leases are short: they end without their worker
_PATIENCE = 2.0  # seconds a server may take to say welcome, however short its beats are
_FINAL = {
    "PROTOCOL_MISMATCH",
    "INVALID_FIELD",
    "ACCESS_DENIED",
    "TOKEN_INVALID",
    "TOKEN_EXPIRED",
    "FEATURE_DISABLED",
    "WORKER_REPLACED",  # another process uses this worker id, e.g. after a fork
}


class Session:
    """Serves the nodes of some programs until it is closed."""

    def __init__(
        self,
        address: str,
        dial: Callable[[], grpc.Channel],
        specs: list[graph_pb2.GraphSpec],
        programs: Mapping[str, Program],
        worker_id: str = "",
    ) -> None:
        self.address, self.specs, self.programs = address, specs, dict(programs)
        self.worker_id = worker_id or f"py-{uuid.uuid4().hex}"
        self.versions: dict[str, str] = {}
        self._wire = Wire(dial)
        self._ready, self._closed, self._over = threading.Event(), threading.Event(), threading.Event()
        self._failure: GraphdError | None = None
        self._lock = threading.Lock()
        self._outbox: queue.SimpleQueue[ws.ConnectRequest | None] = queue.SimpleQueue()
        self._runner = Runner(address, SLOTS)
        self._tasks = Tasks(self.programs, self, self._wire, self._runner, self._closed)
        self._blocked = self._revision = 0
        self._beat, self._heard = 1.0, time.monotonic()
        self._longest_pause = _LONGEST_PAUSE
        self._certainty = Certainty()
        self._threads = [
            threading.Thread(target=self._serve, name="graphd-worker", daemon=True),
            threading.Thread(target=self._tick, name="graphd-worker-tick", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def wait_ready(self, timeout: float) -> dict[str, str]:
        """Waits for the welcome; returns the version of each graph."""
        if not self._ready.wait(timeout):
            text = f"no graphd answered at {self.address} within {timeout:g}s; is `graphd serve` running there?"
            raise ServerUnavailableError(text, code="UNAVAILABLE")
        if self._failure is not None:
            raise self._failure
        return self.versions

    def wait(self) -> None:
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

    def close(self, grace: float = 0.0) -> None:
        """Takes nothing new, lets running tasks finish for a while, leaves."""
        if self._closed.is_set():
            return
        self.send(ws.ConnectRequest(goodbye=ws.Goodbye(reason="the worker leaves")))
        deadline = time.monotonic() + grace
        while self._tasks.leases() and time.monotonic() < deadline:
            self._closed.wait(0.01)
        self._closed.set()
        self._outbox.put(None)
        self._runner.close()
        self._wire.close()
        self._over.set()

    def send(self, request: ws.ConnectRequest) -> None:
        if request.HasField("update"):
            self._tasks.results.noise()
        self._outbox.put(request)

    def record(self, request: ws.RecordMemoRequest) -> ws.RecordMemoResponse:
        response: ws.RecordMemoResponse = self._wire.persist(
            "RecordMemo", request, lambda: self._tasks.lost(request.lease_token)
        )
        return response

    @property
    def sure(self) -> bool:
        return self._certainty.sure

    def confirm(self, attempt: Attempt) -> None:
        self._certainty.wait(lambda: self.sure and not attempt.undecided, lambda: attempt.lost or self._closed.is_set())
        if attempt.lost:
            raise GraphdError("the task was given to another worker", reason="TASK_LEASE_LOST")
        if self._closed.is_set():
            raise GraphdError("this worker has left; another one runs the task again")

    def call(self, attempt: Attempt, request: ws.CallGraphRequest) -> ws.CallGraphResponse:
        request.lease_token = attempt.token
        self._resize(+1)  # a task that waits must not keep its graph from running
        try:
            response: ws.CallGraphResponse = self._wire.persist("CallGraph", request, lambda: attempt.lost)
            return response
        finally:
            self._resize(-1)

    def _resize(self, by: int) -> None:
        with self._lock:
            self._blocked += by
            self._runner.resize(SLOTS + self._blocked)
            self.send(ws.ConnectRequest(credit=self._credit()))

    def _credit(self) -> ws.Credit:
        self._revision += 1
        return ws.Credit(total_slots=SLOTS + self._blocked, revision=self._revision)

    # The stream.

    def _serve(self) -> None:
        pause = 0.05
        while not self._closed.is_set():
            try:
                self._outbox = queue.SimpleQueue()
                self._heard = time.monotonic()
                for response in self._wire.stub.Connect(self._requests(self._outbox)):
                    pause, self._heard = 0.05, time.monotonic()
                    self._take(response)
                problem: GraphdError | None = None
            except grpc.RpcError as error:
                problem = describe(error)
            except ValueError as error:  # the connection was given up just now
                problem = GraphdError(str(error))
            self._certainty.doubt()
            self._outbox.put(None)
            self._tasks.stranded()
            if self._closed.is_set() or self._is_final(problem):
                return
            self._closed.wait(pause)
            pause = min(pause * 2, self._longest_pause)

    def _is_final(self, problem: GraphdError | None) -> bool:
        if problem is None:
            return False
        if reason_of(problem) in _FINAL or (problem.code == "UNIMPLEMENTED"):
            log.error("graphd at %s does not take this worker: %s", self.address, problem)
            self._failure = problem
            self._ready.set()
            self._over.set()
            return True
        log.debug("session with %s broke: %s", self.address, problem)
        return False

    def _requests(self, outbox: queue.SimpleQueue[ws.ConnectRequest | None]) -> Iterator[ws.ConnectRequest]:
        self._certainty.asked(0)
        yield ws.ConnectRequest(hello=self._hello())
        number, last = 0, time.monotonic()
        while not self._closed.is_set() and outbox is self._outbox:
            try:
                request = outbox.get(timeout=max(0.0, last + self._beat - time.monotonic()))
                if request is None:
                    return
                yield request
            except queue.Empty:
                pass
            if time.monotonic() >= last + self._beat:  # beats don't wait for a lull
                number, last = number + 1, time.monotonic()
                self._certainty.asked(number)
                yield ws.ConnectRequest(beat=ws.Beat(number=number, running=self._tasks.leases()))

    def _hello(self) -> ws.Hello:
        manifest = pb.WorkerManifest(
            deployment="python",
            min_protocol=PROTOCOL,
            max_protocol=PROTOCOL,
            features=["memo", "scopes", "call", "drift"],
            graphs=self.specs,
        )
        with self._lock:
            return ws.Hello(
                worker_id=self.worker_id, manifest=manifest, held_leases=self._tasks.leases(), credit=self._credit()
            )

    def _take(self, response: ws.ConnectResponse) -> None:
        match response.WhichOneof("kind"):
            case "welcome":
                self._welcome(response.welcome)
            case "task":
                self._tasks.begin(response.task)
            case "completed":
                self._tasks.answered(response.completed)
            case "cancel":
                self._tasks.stop(response.cancel.lease_token, lost=False)
            case "renewed":
                self._tasks.renewed(response.renewed.token)
            case "beat_ack":
                for token in response.beat_ack.lost:
                    self._tasks.stop(token, lost=True)
                self._tasks.undecided(response.beat_ack.undecided)
                self._certainty.answered(response.beat_ack.number)

    def _welcome(self, welcome: ws.Welcome) -> None:
        self._tasks.largest = welcome.max_result_bytes or self._tasks.largest
        self._beat = max(0.05, welcome.beat_interval.ToTimedelta().total_seconds() or 1.0)
        for token in welcome.lost:
            self._tasks.stop(token, lost=True)
        self._tasks.undecided(welcome.undecided)
        lease = welcome.lease_ttl.ToTimedelta().total_seconds() or 3 * self._beat
        self._longest_pause = min(_LONGEST_PAUSE, max(0.05, lease / 8))
        self._certainty.granted(self._beat, lease)
        self._certainty.answered(0)
        with self._lock:
            self.send(ws.ConnectRequest(credit=self._credit()))  # wakes who waits for the next beat: it may be due
        if FEATURE in welcome.features:
            self._tasks.results.open(self._outbox.put)
        for graph in welcome.graphs:
            if graph.problems:
                problems = {p.field: p.description for p in graph.problems}
                text = "; ".join(f"{field}: {said}" if field else said for field, said in problems.items())
                self._failure = InvalidGraphError(
                    f"graph {graph.graph!r}: {text}", reason="INVALID_GRAPH", violations=problems
                )
            else:
                self.versions[graph.graph] = graph.version
        self._ready.set()

    def _tick(self) -> None:
        while not self._closed.wait(_TICK):
            now = time.monotonic()
            if now - self._heard > max(_SILENT_BEATS * self._beat, _PATIENCE):
                silence = now - self._heard
                log.warning("nothing was heard of graphd at %s for %.1fs; connecting again", self.address, silence)
                self._heard = now
                self._wire.renew()
            self._tasks.tell()
