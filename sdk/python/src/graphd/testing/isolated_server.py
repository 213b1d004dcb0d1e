"""A server of one test, and the environment that leads programs to it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphd.compiled.sessions import close_sessions
from graphd.dev import DevServer, dev
from graphd.remote import AsyncClient, Client
from graphd.security import PLAIN, Security


class IsolatedServer:
    """A server that no other caller uses. ``address`` is where it is, ``security`` how it is called."""

    def __init__(self, store: str, flags: Sequence[str], security: Security) -> None:
        self.security, self._store, self._flags = security, store, tuple(flags)
        self._process: DevServer = dev(store=store, flags=flags, security=security)

    @property
    def address(self) -> str:
        """host:port"""
        return self._process.address

    def client(self) -> Client:
        """A client of the server, without a graph."""
        return Client(self.address, security=self.security)

    def async_client(self) -> AsyncClient:
        """The same for async programs."""
        return AsyncClient(self.address, security=self.security)

    def log(self) -> str:
        """What the server has written since it was started."""
        return self._process.log()

    def restart(self) -> None:
        """Kills the server, as a crash would, and starts it again at the same address on the same store.

        ValueError is raised for a store in memory: nothing would be left of it.
        """
        if self._store == "memory":
            raise ValueError('store is "memory", of which a restart leaves nothing: want "sqlite"')
        self._process.process.kill()
        self._process.process.wait()
        port = self._process.port
        self._process.close()
        self._process = dev(store=self._store, flags=self._flags, port=port, security=self.security)

    def close(self) -> None:
        """Ends the server, and the workers of this process for it."""
        close_sessions(self.address)
        self._process.close()


@contextlib.contextmanager
def isolated_server(
    *, store: str = "memory", flags: Sequence[str] = (), security: Security = PLAIN
) -> Iterator[IsolatedServer]:
    """Starts a server for a block, and ends it with its workers.

    ``store`` is "memory", "sqlite" for a file that ends with the block, or what ``graphd serve --store`` takes;
    ``flags`` are further options of it. In the block GRAPHD_SERVER names the server, and no other GRAPHD_ variable
    of the environment but GRAPHD_BIN counts: a graph that is compiled without ``server`` runs there.
    """
    with tempfile.TemporaryDirectory(prefix="graphd-") as folder:
        place = f"sqlite:{Path(folder) / 'graphd.db'}" if store == "sqlite" else store
        server = IsolatedServer(place, flags, security)
        try:
            with _environment_of(server.address):
                yield server
        finally:
            server.close()


@contextlib.contextmanager
def _environment_of(address: str) -> Iterator[None]:
    hidden = {k: v for k, v in os.environ.items() if k.startswith("GRAPHD_") and k != "GRAPHD_BIN"}
    for name in hidden:
        del os.environ[name]
    os.environ["GRAPHD_SERVER"] = address
    try:
        yield
    finally:
        os.environ.pop("GRAPHD_SERVER", None)
        os.environ.update(hidden)
