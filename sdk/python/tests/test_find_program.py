"""Which program a process starts: the first that there is, and an error that helps where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from graphd.dev import graphd_command
from graphd_bin import MissingProgramError, find, find_program
from graphd_bin.__main__ import run_child


@pytest.fixture(autouse=True)
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without a program, away from a checkout, and an empty PATH."""
    monkeypatch.delenv("GRAPHD_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(find, "_PACKAGE", tmp_path / "site" / "graphd_bin")


def write(path: Path, content: bytes = b"\x7fELF", mode: int = 0o755) -> Path:
    """Makes a file that looks like a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = write(tmp_path / "path" / "graphd")
    assert find_program() == on_path
    carried = write(tmp_path / "site" / "graphd_bin" / "graphd")
    assert find_program() == carried
    named = write(tmp_path / "elsewhere" / "server")
    monkeypatch.setenv("GRAPHD_BIN", str(named))
    assert find_program() == named
    assert graphd_command() == [str(named)]


def test_nothing_is_found() -> None:
    with pytest.raises(MissingProgramError, match=r"carries no program.*install a wheel.*GRAPHD_BIN.*Go"):
        find_program()


@pytest.mark.parametrize("named", ["/nowhere/graphd", "no-such-command"])
def test_a_wrong_variable_is_named(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "path" / "graphd")
    monkeypatch.setenv("GRAPHD_BIN", named)
    with pytest.raises(MissingProgramError, match=f"GRAPHD_BIN is '{named}', which is no program"):
        find_program()


def test_a_carried_program_must_be_executable(tmp_path: Path) -> None:
    write(tmp_path / "site" / "graphd_bin" / "graphd", mode=0o644)
    with pytest.raises(MissingProgramError, match=r"chmod \+x"):
        find_program()


def test_scripts_of_this_package_are_no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = b"#!/venv/bin/python\nfrom graphd_bin.__main__ import main\n"
    write(tmp_path / "path" / "graphd", script)
    with pytest.raises(MissingProgramError):
        find_program()
    behind = write(tmp_path / "more" / "graphd", b'#!/bin/sh\nexec /opt/graphd "$@"\n')
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "path"), str(behind.parent)]))
    assert find_program() == behind


def test_launchers_of_windows_are_no_programs(tmp_path: Path) -> None:
    launcher = write(tmp_path / "path" / "graphd", b"MZ a launcher")
    assert find_program() == launcher
    with zipfile.ZipFile(launcher, "a") as archive:
        archive.writestr("__main__.py", "from graphd_bin.__main__ import main")
    with pytest.raises(MissingProgramError):
        find_program()


def test_a_checkout_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    write(checkout / "go.mod")
    (checkout / "cmd" / "graphd").mkdir(parents=True)
    monkeypatch.setattr(find, "_PACKAGE", checkout / "sdk" / "python" / "src" / "graphd_bin")
    with pytest.raises(MissingProgramError, match="Go"):
        find_program()
    write(tmp_path / "path" / "go", b'#!/bin/sh\n/bin/echo "$@" >"$3"\n')
    built = find_program()
    assert built == checkout / "bin" / "dev" / "graphd"
    assert built.read_text().endswith("./cmd/graphd\n")
    assert [entry.name for entry in built.parent.iterdir()] == ["graphd"]


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphd_bin", "version"],
        env={"PATH": str(tmp_path), "PYTHONPATH": str(Path(find.__file__).parents[1]), "GRAPHD_BIN": "/nowhere"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("graphd: GRAPHD_BIN is '/nowhere'")


def test_a_child_passes_its_exit_code() -> None:
    code = f"from graphd_bin.__main__ import {run_child.__name__} as run; raise SystemExit(run(['/bin/sh', '-c', 'exit 3']))"
    environment = {"PYTHONPATH": str(Path(find.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 3
