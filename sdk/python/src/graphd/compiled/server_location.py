"""Which server a compiled graph is for."""

from __future__ import annotations

import os
import warnings
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
    is_local: bool = False
    """It ends with this process, and others don't know it."""


def find_server(checkpointer: Any, server: str | None, security: Security | None) -> ServerLocation:
    """Reads the arguments of compile, and the environment."""
    given = os.environ.get("GRAPHD_SERVER")
    if server is not None:
        return ServerLocation(server, complete_security(security), lasting=True)
    if hasattr(checkpointer, "address") and hasattr(checkpointer, "prefix"):
        address, own = checkpointer.address, checkpointer.security
        is_local = own is PLAIN
        secured = own if security is None or is_local else complete_security(security)
        return ServerLocation(address, secured, checkpointer.prefix, lasting=address == given, is_local=is_local)
    if given is not None:
        return ServerLocation(given, complete_security(security), lasting=True)
    return ServerLocation(None, PLAIN, stored=checkpointer not in (None, False), is_local=True)


def warn_foreign_saver(saver: Any) -> None:
    """Says where the threads of a graph are that was compiled with a saver of LangGraph, and with no server."""
    if not isinstance(saver, bool):
        warnings.warn(
            f"{type(saver).__name__} keeps nothing here: without a server the threads of the graph are in a local one, "
            "and end with this process; compile(server='host:port'), or set GRAPHD_SERVER",
            stacklevel=2,
        )


def complete_security(given: Security | None) -> Security:
    """Adds what the environment says."""
    return (given or Security()).with_environment(os.environ)
