"""Which server a compiled graph is for."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from graphd.security import PLAIN, Security


class ServerLocation(NamedTuple):
    """The server that a graph was compiled for."""

    address: str | None
    """Of the server; None for a local one, which is not started yet."""
    security: Security
    """How it is called; a local one in plain text."""
    prefix: str = ""
    """Begins the ids of all threads."""
    stored: bool = True
    """Threads are kept."""
    lasting: bool = False
    """The process is to work for the server, also when it holds the graph no more."""


def find_server(checkpointer: Any, server: str | None, security: Security | None) -> ServerLocation:
    """Reads the arguments of compile, and the environment."""
    given = os.environ.get("GRAPHD_SERVER")
    if server is not None:
        return ServerLocation(server, complete_security(security), lasting=True)
    if hasattr(checkpointer, "address") and hasattr(checkpointer, "prefix"):
        address, own = checkpointer.address, checkpointer.security
        is_local = own is PLAIN
        secured = own if security is None or is_local else complete_security(security)
        return ServerLocation(address, secured, checkpointer.prefix, lasting=address == given)
    if given is not None:
        return ServerLocation(given, complete_security(security), lasting=True)
    return ServerLocation(None, PLAIN, stored=checkpointer not in (None, False))


def complete_security(given: Security | None) -> Security:
    """Adds what the environment says."""
    return (given or Security()).with_environment(os.environ)
