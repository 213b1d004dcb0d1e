"""A wheel carries the program: what is installed from it needs no Go and no graphd."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installed import PROJECT, Environment, build_package, make_environment

EXAMPLES = PROJECT.parents[1] / "examples"
ANSWER = '{"decision":"approved_with_conditions","conditions":"10% restocking fee"}'
HOST = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
TIME = "1764000000"

PROGRAM = """
from typing import TypedDict
from graphd import START, Command, InMemorySaver, StateGraph, interrupt

class State(TypedDict, total=False):
    answer: str

builder = StateGraph(State)
builder.add_node("ask", lambda state: {"answer": interrupt("go on?")})
builder.add_edge(START, "ask")
graph = builder.compile(InMemorySaver())
config = {"configurable": {"thread_id": "t"}}
print(graph.invoke({}, config)["__interrupt__"][0].value)
print(graph.invoke(Command(resume="yes"), config))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel for this machine. Go has compiled its packages for bin/graphd, and only links."""
    return build_package("wheel", tmp_path_factory.mktemp("wheel"), GOARCH=HOST, SOURCE_DATE_EPOCH=TIME)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment that had nothing of graphd before the wheel."""
    environment = make_environment(tmp_path_factory.mktemp("empty"), "grpcio", "protobuf", "pytest")
    environment.install(wheel)
    assert shutil.which("go", path=environment.variables()["PATH"]) is None
    return environment


def test_the_wheel_and_the_program_have_one_version(wheel: Path, installed: Environment) -> None:
    number = wheel.name.split("-")[1]
    assert f"graphd v{number} " in installed.run("graphd", "version")
    assert json.loads(installed.run("python", "-m", "graphd", "version", "-o", "json"))["version"] == f"v{number}"
    with zipfile.ZipFile(wheel) as archive:
        assert f"\nVersion: {number}\n" in archive.read(f"graphd-{number}.dist-info/METADATA").decode()


def test_the_demo_runs(installed: Environment) -> None:
    answered = installed.run("graphd", "demo", "--answer", ANSWER)
    assert "10% restocking fee" in answered.partition("final response")[2]
    waiting = installed.run("graphd", "demo", code=3)
    (command,) = (line for line in waiting.splitlines() if "graphd demo resume" in line)
    assert "final response" in installed.run("/bin/sh", "-c", command)


@pytest.mark.parametrize("command", [("graphd",), ("python", "-m", "graphd")])
def test_commands_pass_arguments_and_exit_codes(installed: Environment, command: tuple[str, ...]) -> None:
    assert "graphd demo" in installed.run(*command, "demo", "--help")
    refused = installed.run(*command, "dance", "with me", code=2)
    assert 'unknown command "dance"' in refused
    assert "graphd" in installed.run(*command, "state", "nowhere", "--server", "127.0.0.1:1", code=1)


def test_signals_reach_the_server(installed: Environment) -> None:
    with serve(installed) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_programs_start_the_carried_server(installed: Environment) -> None:
    assert installed.run("python", "-c", PROGRAM).splitlines() == ["go on?", "{'answer': 'yes'}"]


@pytest.mark.parametrize(
    "example",
    [
        "refund-review-python/test_refund.py::test_a_question_outlives_the_worker_and_the_server",
        "tool-approval/test_agent.py",
    ],
    ids=["refund-review-python", "tool-approval"],
)
def test_examples_run(example: str, installed: Environment) -> None:
    """Tests of the examples play them as people do: servers, workers and the command line."""
    command = ["-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:warnings"]
    assert " passed" in installed.run("python", "-B", *command, str(EXAMPLES / example))


def test_a_server_serves_the_graph_of_the_demo(installed: Environment) -> None:
    with serve(installed, "--graphs", str(EXAMPLES / "refund-review")) as (_, address):
        call = ("--server", address, "-o", "json")
        asked = '{"user_id": 42, "user_request": "I want a refund for order 8841"}'
        installed.run("graphd", "run", "refund-review", "--thread", "t", "--input", asked, *call, code=3)
        installed.run("graphd", "resume", "t", "--value", ANSWER, *call)
        state = json.loads(installed.run("graphd", "state", "t", *call))
        assert "10% restocking fee" in state["values"]["final_response"]


@contextlib.contextmanager
def serve(installed: Environment, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that the command starts, and its address."""
    command = ["graphd", "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json", *flags]
    process = subprocess.Popen(command, env=installed.variables(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = (json.loads(line) for line in process.stderr)
        address = next(line["address"] for line in lines if line["msg"] == "serving")
        reader = threading.Thread(target=process.stderr.read)  # a full pipe would stop the server
        reader.start()
        yield process, address
    finally:
        process.kill()
        process.wait()
        reader.join()


@pytest.fixture(scope="module")
def replacement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built from an sdist in another folder, by a person with another umask, to replace an installation
    whose command is on the PATH."""
    folder = tmp_path_factory.mktemp("replacement")
    source = build_package("sdist", folder / "sdist", SOURCE_DATE_EPOCH=TIME)
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (project,) = (folder / "unpacked").iterdir()
    path = put_command(folder, "#!/venv/bin/python\nfrom graphd_bin.__main__ import main")
    return build_package("wheel", folder / "wheel", project, umask=0o077, PATH=path, SOURCE_DATE_EPOCH=TIME)


def test_the_same_code_gives_the_same_wheel(wheel: Path, replacement: Path) -> None:
    """From the checkout for a platform that is named, and from an sdist for the machine."""
    assert replacement.name == wheel.name
    assert hashlib.sha256(replacement.read_bytes()).digest() == hashlib.sha256(wheel.read_bytes()).digest()


def test_without_go_an_installation_from_source_carries_nothing(tmp_path: Path) -> None:
    """Clients of servers elsewhere need no program."""
    built = build_package("wheel", tmp_path / "wheel", PATH=str(tmp_path))
    assert built.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(built) as archive:
        assert "graphd_bin/__main__.py" in archive.namelist()
        assert not {"graphd_bin/graphd", "graphd_bin/graphd.exe"} & {*archive.namelist()}


def test_an_installation_from_source_does_without_what_is_there(tmp_path: Path) -> None:
    built = build_package("wheel", tmp_path / "wheel", PATH=put_command(tmp_path, "#!/bin/sh\nexec /opt/graphd"))
    with zipfile.ZipFile(built) as archive:
        assert "graphd_bin/graphd" not in archive.namelist()
    assert built.name.endswith("-py3-none-any.whl")


def test_an_installation_that_is_replaced_is_not_there(replacement: Path) -> None:
    with zipfile.ZipFile(replacement) as archive:
        assert "graphd_bin/graphd" in archive.namelist()
    assert not replacement.name.endswith("-py3-none-any.whl")


def put_command(folder: Path, text: str) -> str:
    """Puts a command graphd into the folder, and returns a PATH on which it comes first."""
    script = folder / "bin" / "graphd"
    script.parent.mkdir()
    script.write_text(text)
    script.chmod(0o755)
    return os.pathsep.join([str(script.parent), os.environ["PATH"]])


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"GOOS": "plan9"}, "there are no wheels for GOOS/GOARCH plan9/"),
        ({"GOOS": "linux", "PATH": "/nowhere"}, "Go is not on the PATH"),
        ({"GOOS": "linux", "GOFLAGS": "-mod=vendor"}, "Go did not build graphd"),
    ],
)
def test_a_wheel_that_can_not_be_built_says_why(variables: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=says):
        build_package("wheel", tmp_path / "wheel", **variables)
    assert list((tmp_path / "wheel").iterdir()) == []
