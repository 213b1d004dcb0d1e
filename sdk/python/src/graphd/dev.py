"""A graphd server of one's own, for notebooks and tests."""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import socket
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
_lock = threading.Lock()
_shared: list[DevServer] = []
_started: weakref.WeakSet[DevServer] = weakref.WeakSet()


class DevServer:
    """A graphd process that ends with this one, or with ``close()``."""

    def __init__(
        self, *, store: str = "memory", flags: Sequence[str] = (), port: int = 0, security: Security = PLAIN
    ) -> None:
        self.security = security
        self.port = port or _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._log = tempfile.NamedTemporaryFile("w+", prefix="graphd-", suffix=".log", delete=False)  # noqa: SIM115
        # The pipe ends with this process, however that ends, and the server with it.
        command = [*graphd_command(), "serve", "--until-input-ends", "--listen", self.address, "--store", store, *flags]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT, env=environment
        )
        atexit.register(self.close)
        _started.add(self)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        with contextlib.closing(Dialer(Target(self.address, self.security)).open_channel(())) as channel:
            ready = grpc.channel_ready_future(channel)
            while time.monotonic() < deadline:
                if self.process.poll() is not None:
                    raise RuntimeError(f"graphd ended at once:\n{self.log()}")
                try:
                    ready.result(timeout=0.1)
                    return
                except grpc.FutureTimeoutError:
                    continue
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


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
