"""One server for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphd import AsyncClient, Client
from graphd.compiled import sessions
from graphd.dev import DevServer, dev
from tests.graph_documents import COUNT, ELSEWHERE, GREET, REFUND
from tests.secured import make_certificates


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at all of it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server() -> Iterator[DevServer]:
    """A server on the memory store; the graphs of the tests attach to it."""
    for name in ("SERVER", "TLS", "TLS_CA", "TLS_CERT", "TLS_KEY", "TOKEN"):
        os.environ.pop(f"GRAPHD_{name}", None)
    with dev() as started:
        yield started


@pytest.fixture(autouse=True)
def end_sessions() -> Iterator[None]:
    """Ends the sessions of a test's graphs: each one that stays takes processor time from all tests behind it."""
    before = sessions.list_open()
    yield
    for session in sessions.list_open():
        if session not in before:
            session.close()


@pytest.fixture(scope="session")
def client(server: DevServer) -> Client:
    """A client of the server, which has the graphs of ``graph_documents``."""
    made = Client(server.address)
    for document in (REFUND, COUNT, GREET, ELSEWHERE):
        made.graphs.put(document)
    return made


@pytest.fixture
def aclient(client: Client, server: DevServer) -> AsyncClient:
    """The same for async tests."""
    return AsyncClient(server.address)


@pytest.fixture(scope="module")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """httpx trusts one authority: without that each new client reads those of the whole world, and calls http."""
    certifi = pytest.importorskip("certifi")
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    file.write_text(first + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a server, and of its client alice."""
    return make_certificates(tmp_path_factory.mktemp("certs"))
