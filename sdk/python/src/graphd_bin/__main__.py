"""The command ``graphd``: runs the program in place of this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

from graphd_bin.find import MissingProgramError, find_program


def main() -> int:
    """Runs the program with the arguments of this process, and returns its exit code. On
    Unix the program replaces this process, so that it gets the signals."""
    try:
        program = find_program()
    except (MissingProgramError, subprocess.CalledProcessError) as problem:
        print(f"graphd: {problem}", file=sys.stderr)
        return 1
    if os.name == "nt":
        return run_child([str(program), *sys.argv[1:]])
    os.execv(program, [_called_name(program), *sys.argv[1:]])


def run_child(command: list[str]) -> int:
    """Runs a command and returns its exit code. Ctrl-C reaches the child too, which decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.run(command, check=False).returncode


def _called_name(program: Path) -> str:
    """By what name a person calls the program; it shows commands that begin with it."""
    script = Path(sysconfig.get_path("scripts")) / "graphd"
    if not script.exists():
        return str(program)
    return "graphd" if shutil.which("graphd") == str(script) else str(script)


if __name__ == "__main__":
    sys.exit(main())
