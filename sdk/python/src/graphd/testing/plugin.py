"""Fixtures of pytest. A ``conftest.py`` has them with ``pytest_plugins = ["graphd.testing.plugin"]``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphd.remote import AsyncClient, Client
from graphd.testing.answers import AnswerPolicy
from graphd.testing.isolated_server import IsolatedServer, isolated_server


@pytest.fixture
def graphd_store() -> str:
    """The store of ``graphd_server``: override it with "sqlite" for tests that restart the server."""
    return "memory"


@pytest.fixture
def graphd_server(graphd_store: str) -> Iterator[IsolatedServer]:
    """A server for this test alone, which GRAPHD_SERVER names while the test runs."""
    with isolated_server(store=graphd_store) as server:
        yield server


@pytest.fixture
def graphd_client(graphd_server: IsolatedServer) -> Client:
    """A client of the server of this test."""
    return graphd_server.client()


@pytest.fixture
def graphd_async_client(graphd_server: IsolatedServer) -> AsyncClient:
    """A client of the server of this test, for async tests."""
    return graphd_server.async_client()


@pytest.fixture
def graphd_answers() -> Iterator[AnswerPolicy]:
    """Answers for the questions of this test; the test fails when one that is not optional was not needed."""
    answers = AnswerPolicy()
    yield answers
    answers.check_used()
