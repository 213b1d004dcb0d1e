"""The servers, as processes of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 120  # seconds until a server is up


def processor_time(process: int) -> float:
    """Seconds for which a process has had a processor; 0 where the system does not say so in /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, and whose output goes to a file."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_ok(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until a server answers. It fails with the end of its log when that does not happen."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/ok", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer:\n{log.read_text()[-2000:]}")


@contextmanager
def langgraph_dev(jobs: int) -> Iterator[str]:
    """``langgraph dev``, without reload, tracing and browser. The value is its URL."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("graphs.py", "of_langgraph.py", "langgraph.json"):
            shutil.copy(HERE / file, folder)
        port, log = free_port(), folder / "log"
        command = [
            str(Path(sys.executable).with_name("langgraph")),
            "dev",
            "--no-browser",
            "--no-reload",
            "--port",
            str(port),
        ]
        command += ["--n-jobs-per-worker", str(jobs), "--server-log-level", "ERROR"]
        with running(command, folder, log, LANGSMITH_TRACING="false", LANGGRAPH_NO_VERSION_CHECK="true") as process:
            url = f"http://127.0.0.1:{port}"
            await_ok(url, process, log)
            yield url


@contextmanager
def static_server() -> Iterator[str]:
    """A server that knows all answers beforehand. The value is its URL."""
    with tempfile.TemporaryDirectory() as name:
        port, log = free_port(), Path(name) / "log"
        command = [sys.executable, "-m", "uvicorn", "static_server:app", "--port", str(port), "--log-level", "error"]
        with running(command, HERE, log) as process:
            url = f"http://127.0.0.1:{port}"
            await_ok(url, process, log)
            yield url


@contextmanager
def graphd_server(binary: str, store: str) -> Iterator[tuple[str, str, list[int]]]:
    """graphd with a worker in Python. The values are its address for gRPC, its URL, and both processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        address, web, log = (f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}", folder / "log")
        kept = f"sqlite:{folder / 'graphd.db'}" if store == "sqlite" else store
        serve = [binary, "serve", "--listen", address, "--store", kept, "--langgraph", web]
        with running(serve, folder, log) as server:
            await_ok(f"http://{web}", server, log)
            ready = folder / "worker"
            with running([sys.executable, str(HERE / "worker.py"), address], folder, ready) as worker:
                until = time.monotonic() + PATIENCE
                while b"ready" not in ready.read_bytes():
                    if worker.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"the worker does not serve:\n{ready.read_text()[-2000:]}")
                    time.sleep(0.05)
                yield address, f"http://{web}", [server.pid, worker.pid]
