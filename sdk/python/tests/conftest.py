"""One server for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from graphd.dev import DevServer, dev


@pytest.fixture(scope="session")
def server() -> Iterator[DevServer]:
    """A server on the memory store; the graphs of the tests attach to it."""
    for name in ("SERVER", "TLS", "TLS_CA", "TLS_CERT", "TLS_KEY", "TOKEN"):
        os.environ.pop(f"GRAPHD_{name}", None)
    with dev() as started:
        yield started
