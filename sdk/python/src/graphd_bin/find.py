"""Where the program ``graphd`` is."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

PROGRAM = "graphd.exe" if os.name == "nt" else "graphd"
"""The name of the program's file."""

_PACKAGE = Path(__file__).resolve().parent


class MissingProgramError(FileNotFoundError):
    """There is no graphd to run. The message says where it was looked for, and what helps."""


def find_program() -> Path:
    """The program, from the first of these places that has it: the file that $GRAPHD_BIN
    names, the wheel of this package, the PATH, and the checkout that this package is
    imported from, where Go builds it. Raises MissingProgramError when none has it, or
    $GRAPHD_BIN names no program."""
    if named := os.environ.get("GRAPHD_BIN"):
        return _require_program(named)
    carried = _PACKAGE / PROGRAM
    if carried.is_file():
        return _require_executable(carried)
    found = next(list_path_programs(), None) or _build_from_checkout()
    if found is None:
        raise MissingProgramError(
            "this installation of graphd carries no program, and there is none on the PATH: install a wheel for this "
            "platform, set GRAPHD_BIN to the path of a graphd, or install Go and then graphd again from its "
            "source; a server elsewhere needs none: compile(server='host:port')"
        )
    return found


def _require_program(named: str) -> Path:
    """What $GRAPHD_BIN names: a path, or a command on the PATH."""
    if found := shutil.which(named):
        return Path(found)
    raise MissingProgramError(f"GRAPHD_BIN is {named!r}, which is no program: name a graphd, or unset it")


def _require_executable(program: Path) -> Path:
    if not os.access(program, os.X_OK):
        raise MissingProgramError(f"{program} may not be executed: run chmod +x on it, or install graphd anew")
    return program


def list_path_programs() -> Iterator[Path]:
    """The files named graphd on the PATH, without scripts that would call this package again."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("graphd", path=folder) if folder else None
        if found and not _is_console_script(found):
            yield Path(found)


def _is_console_script(path: str) -> bool:
    """Whether an installation of this package, here or in another environment, made the file."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if head.startswith(b"#!"):
        return b"graphd_bin" in head
    return head.startswith(b"MZ") and zipfile.is_zipfile(path)  # on Windows the script is an archive in a launcher


def _build_from_checkout() -> Path | None:
    """Builds the program from the checkout around this file; None if there is none, or no Go."""
    checkout = next((f for f in _PACKAGE.parents if (f / "cmd" / "graphd").is_dir() and (f / "go.mod").is_file()), None)
    if checkout is None or shutil.which("go") is None:
        return None
    target = checkout / "bin" / "dev" / PROGRAM
    target.parent.mkdir(parents=True, exist_ok=True)
    # Another process may build it, or run what it has built, at the same time.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / PROGRAM
        subprocess.run(["go", "build", "-o", str(built), "./cmd/graphd"], cwd=checkout, check=True)
        built.replace(target)
    return target
