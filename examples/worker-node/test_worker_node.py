"""The worker of this folder, as people run it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import CommandLine

from graphd.dev import DevServer, dev, graphd_command
from graphd.security import Security

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """What the worker needs of npm."""
    if not (HERE / "node_modules").exists():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=HERE, check=True)


WORKER = ("node", str(HERE / "worker.js"))
Begin = Callable[[DevServer], subprocess.Popen[str]]


@pytest.fixture
def worker() -> Iterator[Begin]:
    """Starts workers, which end with the test."""
    running: list[subprocess.Popen[str]] = []

    def begin(server: DevServer) -> subprocess.Popen[str]:
        process = subprocess.Popen([*WORKER, server.address], stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == f"serves {server.address}\n"
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_a_worker_that_is_killed_between_question_and_answer(
    server: DevServer, worker: Begin, graphd: CommandLine
) -> None:
    graphd("graph", "put", str(HERE / "greet.yaml"))
    first = worker(server)
    run = graphd("run", "greet", "--thread", "g1", "--input", '{"name": "Ada"}', code=3)
    assert "Hello Ada" in str(run)
    first.kill()
    first.wait()
    worker(server)
    graphd("resume", "g1", "--value", "true")
    assert graphd("state", "g1")["values"] == {"name": "Ada", "greeting": "Hello Ada", "sent": True}


def test_the_variables_of_the_commands_protect_the_worker(
    worker: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([*graphd_command(), "certs", "--dir", str(tmp_path), "--client", "ada"], check=True)
    ca, own, key = (str(tmp_path / name) for name in ("ca.pem", "client-ada.pem", "client-ada-key.pem"))
    served = ["--tls-cert", str(tmp_path / "server.pem"), "--tls-key", str(tmp_path / "server-key.pem")]
    keys = str(tmp_path / "keys.yaml")
    create = [*graphd_command(), "keys", "create", "--file", keys, "--name", "ada"]
    roles = ["--role=viewer", "--role=answerer", "--role=starter", "--role=worker", "--role=author"]
    token = subprocess.run([*create, *roles], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    for name, value in (("TLS_CA", ca), ("TLS_CERT", own), ("TLS_KEY", key), ("TOKEN", token)):
        monkeypatch.setenv(f"GRAPHD_{name}", value)
    wanted = ["--tls-client-ca", ca, "--api-keys", keys]
    with dev(flags=[*served, *wanted], security=Security(ca=ca, cert=own, key=key)) as server:
        graphd = CommandLine(server.address)
        graphd("graph", "put", str(HERE / "greet.yaml"))
        worker(server)
        graphd("run", "greet", "--thread", "g1", "--input", '{"name": "Ada"}', code=3)
        graphd("resume", "g1", "--value", "true")
        assert graphd("state", "g1")["values"]["sent"] is True
        monkeypatch.setenv("GRAPHD_TOKEN", "hush")
        done = subprocess.run([*WORKER, server.address], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert "the session ended: " in done.stderr and "hush" not in done.stderr


def test_a_token_goes_over_tls_or_to_this_host() -> None:
    done = subprocess.run(
        [*WORKER, "graphd.internal:7700"],
        env=os.environ | {"GRAPHD_TOKEN": "t0-ken"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "GRAPHD_TOKEN is not sent to graphd.internal:7700 in plain text" in done.stderr
    assert "t0-ken" not in done.stderr
