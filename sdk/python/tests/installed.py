"""An empty environment into which a wheel of this SDK is installed, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Environment:
    """A venv, and the PATH of a machine without Go and graphd."""

    root: Path

    @property
    def scripts(self) -> Path:
        """Where the commands of the environment are."""
        return self.root / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.scripts / "python"

    def variables(self, **more: str) -> dict[str, str]:
        """The variables of a process in it; HOME is the environment itself."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHD_", "GO", "PYTHON", "XDG_"))}
        folders = [f for f in os.environ["PATH"].split(os.pathsep) if not has_command(f, "go", "graphd")]
        path = os.pathsep.join([str(self.scripts), *folders])
        return kept | {"PATH": path, "HOME": str(self.root), "VIRTUAL_ENV": str(self.root)} | more

    def run(self, *command: str, code: int = 0, given: str = "") -> str:
        """Runs a command that must exit with the code; returns what it writes."""
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=120, env=self.variables(), cwd=self.root
        )
        assert done.returncode == code, f"{command} exits with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def install(self, package: Path) -> None:
        """Installs a wheel; its dependencies must be there."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", "--no-index", str(package)], check=True)


def has_command(folder: str, *names: str) -> bool:
    """Whether a folder of the PATH has one of the commands."""
    return any(shutil.which(name, path=folder) for name in names)


def make_environment(root: Path, *packages: str) -> Environment:
    """Makes a venv with packages of this environment, and with what they depend on."""
    venv.create(root, symlinks=True, with_pip=False)
    site = next(root.glob("lib/python*/site-packages"))
    for name in set(list_requirements(packages)):
        copy_distribution(name, site)
    return Environment(root)


def list_requirements(names: Iterable[str]) -> Iterator[str]:
    """Installed distributions, and those that they require."""
    for name in names:
        yield name
        required = map(Requirement, distribution(name).requires or ())
        yield from list_requirements(r.name for r in required if r.marker is None or r.marker.evaluate({"extra": ""}))


def copy_distribution(name: str, site: Path) -> None:
    """Copies the files of an installed distribution, and what Python has compiled of them."""
    found = distribution(name)
    for file in found.files or ():
        source, target = Path(found.locate_file(file)), site / file
        if target.resolve().is_relative_to(site.resolve()) and (file.suffix != ".pyc" or source.exists()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)  # with its time: code that Python has compiled is for a source of that time


def build_package(kind: str, folder: Path, project: Path = PROJECT, *, umask: int = 0o022, **variables: str) -> Path:
    """Builds a wheel or an sdist as ``make wheels`` does, and returns the file."""
    kept = {k: v for k, v in os.environ.items() if k not in ("GOOS", "GOARCH", "GRAPHD_BIN")}
    command: Sequence[str] = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(
        command, cwd=project, env=kept | variables, umask=umask, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built
