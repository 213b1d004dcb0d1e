"""A graphd server of one's own, for notebooks and tests."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence

import grpc

from graphd.security import PLAIN, Security, Target
from graphd.transport.dialer import Dialer
from graphd_bin import find_program

_START_TIMEOUT = 60.0
_LOG_INTERVAL = 0.02
_lock = threading.Lock()
_shared: list[DevServer] = []
_started: weakref.WeakSet[DevServer] = weakref.WeakSet()


class DevServer:
    """A graphd process that ends with this one, or with ``close()``."""

    def __init__(
        self, *, store: str = "memory", flags: Sequence[str] = (), port: int = 0, security: Security = PLAIN
    ) -> None:
        if port == 0 and _hides_address(flags):
            raise ValueError(
                "flags: they hide the line of the log that says where the server serves: give port as well"
            )
        self.security = security
        self.port = port
        self._log = tempfile.NamedTemporaryFile("w+", prefix="graphd-", suffix=".log", delete=False)  # noqa: SIM115
        # The pipe ends with this process, however that ends, and the server with it.
        command = [*graphd_command(), "serve", "--until-input-ends", "--listen", f"127.0.0.1:{port}", "--store", store]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")}
        self.process = subprocess.Popen(
            [*command, *flags], stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT, env=environment
        )
        atexit.register(self.close)
        _started.add(self)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """Where it is called."""
        return f"127.0.0.1:{self.port}"

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while self.port == 0:
            self._check_start(deadline)
            self.port = _find_port(self.log())
            if self.port == 0:
                time.sleep(_LOG_INTERVAL)
        with contextlib.closing(Dialer(Target(self.address, self.security)).open_channel(())) as channel:
            ready = grpc.channel_ready_future(channel)
            while True:
                self._check_start(deadline)
                try:
                    ready.result(timeout=0.1)
                    return
                except grpc.FutureTimeoutError:
                    continue

    def _check_start(self, deadline: float) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"graphd ended at once:\n{self.log()}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"graphd did not begin to serve within {_START_TIMEOUT:g}s:\n{self.log()}")

    def log(self) -> str:
        """What the server has written so far."""
        return pathlib.Path(self._log.name).read_text(errors="replace")

    def close(self) -> None:
        """Ends the server."""
        atexit.unregister(self.close)
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
        pathlib.Path(self._log.name).unlink(missing_ok=True)

    def __enter__(self) -> DevServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dev(*, store: str = "memory", flags: Sequence[str] = (), port: int = 0, security: Security = PLAIN) -> DevServer:
    """Starts a server: $GRAPHD_BIN, the program that this package carries, ``graphd`` on the PATH, or from source.

    ``security`` says how it is called when the flags have it serve TLS.
    """
    return DevServer(store=store, flags=flags, port=port, security=security)


def shared_dev_server() -> DevServer:
    """The server that graphs compiled without an address use together."""
    with _lock:
        if _shared and _shared[0].process.poll() is None:
            return _shared[0]
        _shared[:] = [DevServer()]
        return _shared[0]


def _forget_servers() -> None:
    """The servers belong to the process that was forked: they are to end with it, and only with it."""
    global _lock
    _lock = threading.Lock()
    for server in list(_started):
        atexit.unregister(server.close)
        if server.process.stdin is not None:
            server.process.stdin.close()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_servers)


def graphd_command() -> list[str]:
    """The command that starts graphd. Raises FileNotFoundError when there is none; its
    message says where it was looked for, and what helps."""
    return [str(find_program())]


def _hides_address(flags: Sequence[str]) -> bool:
    """Whether flags take the line out of the log that says where the server serves, or write it for people."""
    given = " ".join(flags).replace("=", " ").split()
    return any(
        name in ("--log-level", "--log-format") and value not in ("debug", "info", "json")
        for name, value in itertools.pairwise(given)
    )


def _find_port(log: str) -> int:
    """The port at which a server serves, by its log; 0 = it does not say so yet."""
    for line in log.splitlines():
        if '"msg":"serving"' in line and line.endswith("}"):
            return int(json.loads(line)["address"].rpartition(":")[2])
    return 0
