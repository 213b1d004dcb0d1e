"""Which server a compiled graph is for."""

from __future__ import annotations

import os
from typing import Any, NamedTuple


class Where(NamedTuple):
    """What compile was told of servers."""

    address: str | None
    """Of the server; None for a local one, which is not started yet."""
    prefix: str = ""
    """Begins the ids of all threads."""
    stored: bool = True
    """Threads are kept."""
    lasting: bool = False
    """The process is to work for the server, also when it holds the graph no more."""


def where(checkpointer: Any, server: str | None) -> Where:
    """Reads the arguments of compile, and GRAPHD_SERVER."""
    given = os.environ.get("GRAPHD_SERVER")
    if server is not None:
        return Where(server, lasting=True)
    if hasattr(checkpointer, "address") and hasattr(checkpointer, "prefix"):
        return Where(checkpointer.address, checkpointer.prefix, lasting=checkpointer.address == given)
    if given is not None:
        return Where(given, lasting=True)
    return Where(None, stored=checkpointer not in (None, False))
