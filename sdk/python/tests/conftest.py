"""One server for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from graphd.dev import DevServer, dev


@pytest.fixture(scope="session")
def server() -> Iterator[DevServer]:
    """A server on the memory store; the graphs of the tests attach to it."""
    os.environ.pop("GRAPHD_SERVER", None)
    with dev() as started:
        yield started
