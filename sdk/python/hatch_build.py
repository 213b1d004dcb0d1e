"""Puts the program graphd into wheels, and its Go code into the sdist.

A wheel carries the program where GOOS or GOARCH names the platform. An
installation from source carries it where Go is installed and no other graphd is.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

# The oldest systems on which Go's programs run: no libc is linked, so glibc and musl are alike.
PLATFORM_TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}

# What the program is built from, below the root of the repository and below go/ of the sdist.
GO_SOURCES = (
    *("go.mod", "go.sum", "client", "cmd/graphd", "gen", "graph", "internal"),
    *("page/page.go", "page/dist", "examples/refund-review"),
)
TEST_FOLDERS = {"testdata", "testkit", "checkpointtest", "redistest"}


class ProgramError(Exception):
    """The program can't be built. The message says why, and what would be right."""


class ProgramBuildHook(BuildHookInterface[Any]):
    """hatchling calls it before it writes a wheel or an sdist."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files to what is written; ``version`` is "editable" for one that is not carried about."""
        sources = find_go_sources(Path(self.root))
        if self.target_name == "sdist":
            build_data["force_include"].update(dict(list_go_files(sources)) if sources else {})
        elif version != "editable" and self._carries_program(sources):
            self._scratch = tempfile.TemporaryDirectory(prefix="graphd-wheel-")
            sources = require_go(sources)
            platform = read_platform(sources)
            program = build_program(sources, Path(self._scratch.name), platform, self.metadata.version)
            build_data["force_include"][str(program)] = f"graphd_bin/{program.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{find_tag(platform)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the program that was built."""
        if hasattr(self, "_scratch"):
            self._scratch.cleanup()

    def _carries_program(self, sources: Path | None) -> bool:
        if is_platform_named():
            return True
        if os.environ.get("GRAPHD_BIN") or is_on_path(Path(self.root)):
            self.app.display_info("graphd is installed already: this installation carries none")
        elif sources is None or shutil.which("go") is None:
            self.app.display_warning("without Go this installation carries no graphd: set GRAPHD_BIN to run one")
        else:
            return True
        return False


def is_platform_named() -> bool:
    """Whether the caller says for which platform the program is."""
    return bool(os.environ.get("GOOS") or os.environ.get("GOARCH"))


def is_on_path(root: Path) -> bool:
    """Whether the PATH has a graphd that stays when an earlier installation of this package is replaced."""
    find = runpy.run_path(str(root / "src" / "graphd_bin" / "find.py"))
    return any(find["list_path_programs"]())


def find_go_sources(root: Path) -> Path | None:
    """The folder with the Go code: go/ of an sdist, or the checkout around this folder."""
    return next((f for f in (root / "go", root.parent.parent) if (f / "cmd" / "graphd").is_dir()), None)


def list_go_files(sources: Path) -> Iterator[tuple[str, str]]:
    """The files of the program, each with its place in the sdist."""
    for name in GO_SOURCES:
        found = sources / name
        for path in sorted(found.rglob("*")) if found.is_dir() else [found]:
            below = path.relative_to(sources)
            if path.is_file() and not path.name.endswith("_test.go") and TEST_FOLDERS.isdisjoint(below.parts):
                yield str(path), f"go/{below.as_posix()}"


def require_go(sources: Path | None) -> Path:
    """The folder with the Go code. Raises ProgramError without it, and without Go."""
    if sources is None:
        raise ProgramError("the Go code of graphd is not here: build from a checkout, or from an sdist")
    if shutil.which("go") is None:
        raise ProgramError("Go is not on the PATH: install Go, or unset GOOS and GOARCH and build without the program")
    return sources


def read_platform(sources: Path) -> str:
    """GOOS/GOARCH of the program. Raises ProgramError when they name a platform that has no wheels."""
    said = json.loads(subprocess.check_output(["go", "env", "-json", "GOOS", "GOARCH"], cwd=sources))
    platform = f"{said['GOOS']}/{said['GOARCH']}"
    if is_platform_named() and platform not in PLATFORM_TAGS:
        raise ProgramError(f"there are no wheels for GOOS/GOARCH {platform}: want one of {', '.join(PLATFORM_TAGS)}")
    return platform


def find_tag(platform: str) -> str:
    """The tag of the wheel; on a platform without wheels that of this machine."""
    return PLATFORM_TAGS.get(platform) or next(iter(platform_tags()))


def build_program(sources: Path, folder: Path, platform: str, version: str) -> Path:
    """Builds the program into the folder. The same code and Go give the same bytes in every folder."""
    program = folder / ("graphd.exe" if platform.startswith("windows/") else "graphd")
    command = ["go", "build", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w -buildid= -X main.version=v{version}"]
    built = subprocess.run(
        [*command, "-o", str(program), "./cmd/graphd"], cwd=sources, env=os.environ | {"CGO_ENABLED": "0"}, check=False
    )
    if built.returncode != 0:
        raise ProgramError(
            "Go did not build graphd, see above; with GRAPHD_BIN=PATH the installation carries no program"
        )
    return program
