"""Which server a compiled graph is for."""

from __future__ import annotations

import os
from typing import Any, NamedTuple


class ServerLocation(NamedTuple):
    """The server that a graph was compiled for."""

    address: str | None
    """Of the server; None for a local one, which is not started yet."""
    prefix: str = ""
    """Begins the ids of all threads."""
    stored: bool = True
    """Threads are kept."""
    lasting: bool = False
    """The process is to work for the server, also when it holds the graph no more."""


def find_server(checkpointer: Any, server: str | None) -> ServerLocation:
    """Reads the arguments of compile, and GRAPHD_SERVER."""
    given = os.environ.get("GRAPHD_SERVER")
    if server is not None:
        return ServerLocation(server, lasting=True)
    if hasattr(checkpointer, "address") and hasattr(checkpointer, "prefix"):
        return ServerLocation(checkpointer.address, checkpointer.prefix, lasting=checkpointer.address == given)
    if given is not None:
        return ServerLocation(given, lasting=True)
    return ServerLocation(None, stored=checkpointer not in (None, False))
