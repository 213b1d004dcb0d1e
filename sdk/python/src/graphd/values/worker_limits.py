"""How many tasks a worker takes at the same time."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class WorkerLimits:
    """The limits of one worker: ``compile(worker=WorkerLimits(threads=32))``.

    ValueError is raised for a limit that is less than 1, or for ``kept_bytes`` less than 0.
    """

    threads: int = 256
    """Tasks of plain functions. Each has a thread while it runs."""
    coroutines: int = 10_000
    """Tasks of async functions. They share an event loop; each holds its input until it ends."""
    coroutine_bytes: int = 256 << 20
    """Bytes of the inputs of all async tasks together. Beyond it the worker takes no further one."""

    kept_bytes: int = 32 << 20
    """Bytes of values of states that are kept for later tasks, so that the server sends each once; 0 keeps none. The
    memory for them is about twice as much."""

    def __post_init__(self) -> None:
        for field in fields(self):
            given, least = getattr(self, field.name), 0 if field.name == "kept_bytes" else 1
            if not isinstance(given, int) or isinstance(given, bool) or given < least:
                raise ValueError(f"{field.name} is {given!r}; want a whole number, {least} or more")
