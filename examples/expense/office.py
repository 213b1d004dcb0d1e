"""The people of the example, at terminals of their own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

from graphd.dev import graphd_command

GRAPH = Path(__file__).with_name("graph.yaml")
GROUPS = {"eva": "", "tom": "team-leads", "ana": "finance", "ben": "finance", "ida": "board"}


class Person:
    """Types commands that call as one person, by a context of that name."""

    def __init__(self, name: str, home: Path) -> None:
        outside = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHD_")}
        self._environment = outside | {"GRAPHD_CONFIG_HOME": str(home), "GRAPHD_CONTEXT": name}

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Runs a command that must exit with the code; returns what it shows."""
        command = [*graphd_command(), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, f"{arguments} exits with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def types(self, *arguments: str, lines: list[str], code: int = 0) -> str:
        """Runs a command at a terminal and types lines; returns what the terminal shows."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*graphd_command(), *arguments], env=self._environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        os.write(ours, "".join(line + "\n" for line in lines).encode())
        shown = b"".join(iter(lambda: read_terminal(ours), b"")).decode().replace("\r\n", "\n")
        os.close(ours)
        assert process.wait(timeout=60) == code, shown
        return shown

    def question(self, thread: str) -> Any:
        """The last question of a thread, in whatever state."""
        return json.loads(self("inbox", "show", thread, "-o", "json"))


def read_terminal(terminal: int) -> bytes:
    """What a program has written to its terminal; nothing when it has ended."""
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so that nobody writes any more
        return b""


# The parts of the graph whose durations tests replace.
DURATIONS = {"remind": "after: 1d,", "escalate": "after: 2d,", "default": "after: 4d,", "undo": "undo: 10s\n"}


def write_graph(path: Path, durations: dict[str, str]) -> None:
    """Writes the graph of the example with other durations."""
    graph = GRAPH.read_text()
    for name, duration in durations.items():
        before = DURATIONS[name]
        assert before in graph, f"the graph has no {before}"
        graph = graph.replace(before, before.split(":")[0] + f": {duration}" + before[-1])
    path.write_text(graph)


def make_keys(keys: Path) -> None:
    """Makes a key for each person, and beside it a file NAME.token that only the person can read."""
    for name, group in GROUPS.items():
        create = ["keys", "create", "--file", str(keys), "--name", name, "--role=starter", "--role=answerer"]
        groups = [f"--group={group}"] if group else []
        token = subprocess.check_output([*graphd_command(), *create, *groups], stderr=subprocess.DEVNULL)
        kept = keys.with_name(f"{name}.token")
        kept.touch(mode=0o600)
        kept.write_bytes(token)


def let_in(address: str, keys: Path) -> dict[str, Person]:
    """Returns the people, each of whom has a context for the server."""
    people = {name: Person(name, keys.with_name("contexts")) for name in GROUPS}
    for name, person in people.items():
        person("context", "add", name, "--server", address, "--token-file", str(keys.with_name(f"{name}.token")))
    return people
