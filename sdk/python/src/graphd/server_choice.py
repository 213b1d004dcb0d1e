"""Which server a saver keeps its threads in, and a store its items."""

from __future__ import annotations

import os
from typing import Any

from graphd.dev import shared_dev_server
from graphd.security import PLAIN, Security
from graphd.transport.server import Server, server_at


class ServerChoice:
    """The server that a program names, that GRAPHD_SERVER names, or a local one
    that ends with this process."""

    def __init__(self, server: str | None, security: Security | None) -> None:
        self._server = server or os.environ.get("GRAPHD_SERVER")
        self._security = security

    @property
    def is_local(self) -> bool:
        """Nothing names a server."""
        return self._server is None

    @property
    def address(self) -> str:
        """Where the server is; starts it when there is none."""
        return self._server or shared_dev_server().address

    @property
    def security(self) -> Security:
        """How the server is called."""
        if self.is_local:
            return PLAIN
        return (self._security or Security()).with_environment(os.environ)

    @property
    def connection(self) -> Server:
        """The connection to the server."""
        return server_at(self.address, self.security)

    @property
    def stubs(self) -> Any:
        """The services of the server."""
        return self.connection.stubs
