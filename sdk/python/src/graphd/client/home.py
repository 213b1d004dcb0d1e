"""Where a compiled graph lives: its server, its sessions, its versions."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from graphd.client.server import Server, server_at
from graphd.graph.program import Program
from graphd.graph.spec import spec_of

if TYPE_CHECKING:
    from graphd.client.attached import Attached
    from graphd.worker.session import Session

ATTACH_TIMEOUT = 30.0


class Home:
    """One server that a compiled graph is attached to."""

    def __init__(self, server: Server, session: Session, versions: dict[str, str]) -> None:
        self.server, self.session, self.versions = server, session, versions


def address_of(checkpointer: Any, server: str | None) -> tuple[str | None, str, bool]:
    """Address (None: a local server), prefix of threads, and whether they stay."""
    if server is not None:
        return server, "", True
    if hasattr(checkpointer, "address") and hasattr(checkpointer, "prefix"):
        return checkpointer.address, checkpointer.prefix, True
    if (given := os.environ.get("GRAPHD_SERVER")) is not None:
        return given, "", True
    return None, "", checkpointer not in (None, False)


def attach(graph: Attached, address: str) -> Home:
    """Makes this process a worker for a graph and its children."""
    from graphd.worker.session import Session

    server = server_at(address)
    specs, programs = [], {}
    for child in descendants(graph.program):
        specs.append(spec_of(child, as_child=True))
        programs[child.name] = child
    specs.append(spec_of(graph.program))
    programs[graph.program.name] = graph.program
    session = Session(server.address, server.dial, specs, programs)
    weakref.finalize(graph, session.close)
    _register(session)
    return Home(server, session, session.wait_ready(ATTACH_TIMEOUT))


def descendants(program: Program) -> list[Program]:
    """The graphs that are nodes below a graph, innermost first, each once."""
    found: dict[int, Program] = {}
    for child in program.children().values():
        for one in [*descendants(child.program), child.program]:
            found.setdefault(id(one), one)
    return list(found.values())


def readable(program: Program) -> list[Program]:
    """The graphs whose states may show below a graph: those that its nodes call too."""
    found: dict[int, Program] = {}
    left = [g.program for g in program.graphs().values()]
    while left:
        one = left.pop()
        if found.setdefault(id(one), one) is one:
            left += [g.program for g in one.graphs().values() if id(g.program) not in found]
    return list(found.values())


_sessions: weakref.WeakSet[Any] = weakref.WeakSet()
_sessions_lock = threading.Lock()


def _register(session: Session) -> None:
    with _sessions_lock:
        if not _sessions:
            import atexit

            atexit.register(_leave)
        _sessions.add(session)


def _leave() -> None:
    for session in list(_sessions):
        session.close()
