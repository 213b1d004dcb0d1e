"""The worker of this folder, as people run it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import CommandLine

from graphd.dev import DevServer

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """What the worker needs of npm."""
    if not (HERE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=HERE, check=True)


Begin = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def worker(server: DevServer) -> Iterator[Begin]:
    """Starts workers, which end with the test."""
    running: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        command = ["node", str(HERE / "worker.js"), server.address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == f"serves {server.address}\n"
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_a_worker_that_is_killed_between_question_and_answer(worker: Begin, graphd: CommandLine) -> None:
    graphd("graph", "put", str(HERE / "greet.yaml"))
    first = worker()
    run = graphd("run", "greet", "--thread", "g1", "--input", '{"name": "Ada"}', code=3)
    assert "Hello Ada" in str(run)
    first.kill()
    first.wait()
    worker()
    graphd("resume", "g1", "--value", "true")
    assert graphd("state", "g1")["values"] == {"name": "Ada", "greeting": "Hello Ada", "sent": True}
