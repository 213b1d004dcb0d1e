"""Servers that speak the API of LangGraph Server."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from graphd.dev import DevServer


def find_url(server: DevServer) -> str:
    """The URL that a server says it serves the API at."""
    while server.process.poll() is None:
        for line in server.log().splitlines():
            with contextlib.suppress(ValueError):
                if (url := str(json.loads(line).get("langgraph"))).startswith("http"):
                    return url
        time.sleep(0.01)
    raise RuntimeError(f"graphd ended:\n{server.log()}")


@contextlib.contextmanager
def open_store(kind: str, folder: Path) -> Iterator[str]:
    """A new store of a kind."""
    if kind == "memory":
        yield "memory"
        return
    if kind == "sqlite":
        yield f"sqlite:{folder}/graphd.db"
        return
    while True:
        port = random.randrange(10_000, 32_000)
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        redis = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert redis.stdout is not None
        try:
            if any("Ready to accept connections" in line for line in redis.stdout):
                yield f"redis://127.0.0.1:{port}/0"
                return
        finally:
            redis.kill()
            redis.wait()
            redis.stdout.close()
