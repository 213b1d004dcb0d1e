"""A network that breaks on request."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Relay:
    """Passes TCP connections on to a server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._frozen = threading.Event()
        self._links: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Nothing comes through the connections that exist, and they stay open."""
        self._frozen.set()
        self._frozen = threading.Event()

    def cut(self) -> None:
        """Breaks the connections that exist."""
        links, self._links = self._links, []
        for one in links:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes who reads

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                self._links += [near, far]
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(a, b, self._frozen), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket, frozen: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if frozen.is_set():
                    return  # neither end is closed
                target.sendall(data)
            target.close()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in (self._listener, *self._links):
            one.close()
