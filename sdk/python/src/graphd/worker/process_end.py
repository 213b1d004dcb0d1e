"""Whether the program has come to its end, and the process waits for its threads."""

from __future__ import annotations

import threading
import time

_PATIENCE = 5.0  # seconds for which a server that is away keeps a program from ending

_ended: list[float] = []


def _note_end() -> None:
    _ended.append(time.monotonic())


# Pools of threads are joined at the end of the program, and atexit handlers come after that.
_register = getattr(threading, "_register_atexit", None)
if _register is not None:
    _register(_note_end)


def has_waited_enough() -> bool:
    """The program has ended, and the server was given time to come back."""
    return bool(_ended) and time.monotonic() - _ended[0] > _PATIENCE
