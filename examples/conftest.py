"""Servers, workers and the command line as separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphd.dev import DevServer, dev, graphd_command


@dataclass
class Program:
    """A process and the first line that it wrote."""

    process: subprocess.Popen[str]
    says: str


Start = Callable[..., Program]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DevServer]:
    """A server that keeps its threads in a file."""
    with dev(store=f"sqlite:{tmp_path}/graphd.db") as started:
        yield started


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a Python program and waits for its first line."""
    running: list[subprocess.Popen[str]] = []

    def begin(program: Path, *arguments: str, **environment: str) -> Program:
        command = [sys.executable, str(program), *arguments]
        process = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        says = process.stdout.readline().strip()
        assert says, f"{program.name} ended with {process.wait()} before it said anything"
        return Program(process, says)

    yield begin
    for process in running:
        process.kill()
        process.communicate()


class CommandLine:
    """The command graphd, for one server."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(self, *arguments: str, code: int = 0) -> Any:
        """Runs a command that must exit with the code; returns its JSON."""
        command = [*graphd_command(), *arguments, "--server", self._address, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, f"{arguments} exits with {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout else done.stderr


@pytest.fixture
def graphd(server: DevServer) -> CommandLine:
    """The command line of the server."""
    return CommandLine(server.address)
