"""The sessions in which this process works for servers, and when they end.

A session ends with ``detach()``, with the process, or with the last reference
to its graph. A lasting one outlives its graph: ``compile(server=...)`` makes the
process work for that server, whether or not the program keeps what compile
returned. When a graph of the same name is attached, it takes over.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass

from graphd.client.connection import GraphConnection
from graphd.declare.manifest import build_manifest
from graphd.declare.program import Program
from graphd.security import Target
from graphd.transport.server import server_at
from graphd.values.worker_limits import WorkerLimits
from graphd.worker.session import Session

ATTACH_TIMEOUT = 30.0
_GRACE = 20.0  # seconds that the tasks of a session have when another one takes over


@dataclass(frozen=True)
class Attachment(GraphConnection):
    """A connection to a server that this process works for."""

    session: Session


@dataclass(frozen=True)
class _LastingSession:
    owner: weakref.ref[object]
    session: Session


_lock = threading.Lock()
_open: weakref.WeakSet[Session] = weakref.WeakSet()
_Key = tuple[Target, str, frozenset[str]]
_lasting: dict[_Key, list[_LastingSession]] = {}


def attach_program(
    program: Program, target: Target, owner: object, limits: WorkerLimits, *, lasting: bool
) -> Attachment:
    """Makes this process a worker for a graph and its children, within limits.

    GraphdError is raised when the server does not take it.
    """
    server, manifest = server_at(*target), build_manifest(program)
    programs = {p.name: p for p in [*program.descendants(), program]}
    _wait_for_orphans()
    session = Session(server, manifest, programs, limits=limits, store=program.store)
    if not lasting:
        _close_after(owner, session)
    _register_session(session)
    try:
        versions = session.wait_ready(ATTACH_TIMEOUT)
    except BaseException:
        session.close()
        raise
    served = frozenset(node.node for node in manifest.nodes)  # of a part; others may have other nodes
    key = (target, program.name, served)
    _replace_sessions(key, _LastingSession(weakref.ref(owner), session) if lasting else None)
    return Attachment(server, versions, session)


def close_attachment(attachment: Attachment, grace: float) -> None:
    """Takes no more work; what runs has so many seconds to end."""
    attachment.session.close(grace)
    with _lock:
        for key, known in list(_lasting.items()):
            _lasting[key] = [one for one in known if one.session is not attachment.session]
            if not _lasting[key]:
                del _lasting[key]


# Sessions whose graphs are gone. The collector may run in any thread, in the middle of
# anything, with any lock held: a finalizer must not close a session itself.
_orphans: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
_closer: threading.Thread | None = None


def _close_after(owner: object, session: Session) -> None:
    """Closes a session when its graph is collected."""
    global _closer
    with _lock:
        if _closer is None or not _closer.is_alive():  # a fork has no threads
            _closer = threading.Thread(target=_close_orphans, name="graphd-closer", daemon=True)
            _closer.start()
    weakref.finalize(owner, _orphans.put, session.close)


def _close_orphans() -> None:
    while True:
        _orphans.get()()


def _wait_for_orphans() -> None:
    """Waits until the sessions of graphs that are gone are closed: one of the same name would be given tasks of the
    next graph."""
    with _lock:
        closer = _closer
    if closer is not None and closer.is_alive():
        closed = threading.Event()
        _orphans.put(closed.set)
        closed.wait(ATTACH_TIMEOUT)


def _register_session(session: Session) -> None:
    with _lock:
        atexit.unregister(_close_all)
        atexit.register(_close_all)  # the latest comes first: before a local server ends that was started meanwhile
        _open.add(session)


def _replace_sessions(key: _Key, new: _LastingSession | None) -> None:
    """Ends lasting sessions of the same graph that the program holds no longer."""
    with _lock:
        known = [one for one in _lasting.pop(key, []) if not one.session.closed]
        kept = [one for one in known if one.owner() is not None] + ([new] if new else [])
        if kept:
            _lasting[key] = kept
    for one in known:
        if one not in kept:
            threading.Thread(target=one.session.close, args=(_GRACE,), name="graphd-leave", daemon=True).start()


def close_sessions(address: str) -> None:
    """Works for the server at an address no longer. Graphs that are called again are attached anew."""
    for session in list_open():
        if session.address == address:
            session.close()


def _close_all() -> None:
    for session in list_open():
        session.close()


def list_open() -> list[Session]:
    """The sessions of this process that have not been collected; some may be closed."""
    with _lock:
        return list(_open)


def _forget_sessions() -> None:
    """The sessions are those of the process that was forked: their connections and threads are there."""
    global _lock, _closer
    _lock, _closer = threading.Lock(), None
    atexit.unregister(_close_all)
    _open.clear()
    _lasting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_sessions)
