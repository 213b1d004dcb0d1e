"""Clients and workers of servers that want TLS, certificates and tokens."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from graphd import Security
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.declare.manifest import Manifest
from graphd.dev import DevServer, dev, graphd_command
from graphd.errors import (
    AccessDeniedError,
    ServerUnavailableError,
    TLSError,
    UnauthenticatedError,
)
from graphd.transport import certificates, token
from graphd.transport.server import call_unary, server_at
from graphd.worker.session import Session
from tests.gate import Gate
from tests.secured import build, list_workers, make_certificates, server_flags, use_everything
from tests.test_worker import State, config, wait_until


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of another CA."""
    return make_certificates(tmp_path_factory.mktemp("foreign"))


def as_alice(certs: Path, ca: Path | None = None) -> Security:
    own, key = certs / "client-alice.pem", certs / "client-alice-key.pem"
    return Security(ca=(ca or certs) / "ca.pem", cert=own, key=key)


@pytest.fixture(scope="module")
def encrypted(certs: Path) -> Iterator[DevServer]:
    """A server with TLS."""
    with dev(flags=server_flags(certs), security=Security(ca=certs / "ca.pem")) as started:
        yield started


@pytest.fixture(scope="module")
def mutual(certs: Path) -> Iterator[DevServer]:
    """A server that wants certificates of clients."""
    with dev(flags=server_flags(certs, mutual=True), security=as_alice(certs)) as started:
        yield started


async def test_clients_and_workers_use_tls(encrypted: DevServer) -> None:
    await use_everything(encrypted, encrypted.address, encrypted.security, "tls")


async def test_clients_and_workers_present_their_certificate(mutual: DevServer) -> None:
    await use_everything(mutual, mutual.address, mutual.security, "mutual")


def test_the_environment_says_how_the_server_is_called(mutual: DevServer, certs: Path) -> None:
    program = """
import os
from graphd import START, InMemorySaver, StateGraph
graph = StateGraph(dict).add_node("node", dict).add_edge(START, "node")
print(graph.compile(name="environment").invoke({"a": 1}, {"configurable": {"thread_id": "environment-tls"}}))
print(graph.compile(InMemorySaver(), name="environment").invoke({"a": 2}, {"configurable": {"thread_id": "environment-tls-2"}}))
"""
    own = {
        "GRAPHD_SERVER": mutual.address,
        "GRAPHD_TLS_CA": str(certs / "ca.pem"),
        "GRAPHD_TLS_CERT": str(certs / "client-alice.pem"),
        "GRAPHD_TLS_KEY": str(certs / "client-alice-key.pem"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | own, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.count("\n") == 2


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"])
def test_the_cas_of_the_system_count(
    encrypted: DevServer, certs: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", raising=False)
    monkeypatch.setenv(variable, str(certs / "ca.pem"))
    tls = Security(tls=True, token=variable)  # a connection of its own
    graph = build().compile(server=encrypted.address, security=tls, name="system")
    assert graph.invoke({"log": []}, config(f"system-{variable}")) == {"log": ["done"]}
    graph.detach()


def at_any_address(server: DevServer) -> str:
    """The server under an address that is not in its certificate."""
    return f"0.0.0.0:{server.port}"


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("another CA", "the server's certificate is of another CA: name the file of its CA with ca=FILE"),
        ("system CA", "the server's certificate is of another CA"),
        ("another name", "call the server by a name or an address of its certificate"),
        ("no certificate", "refuses this client's certificate, or the lack of one: give one of its --tls-client-ca"),
        ("foreign certificate", "refuses this client's certificate"),
        ("no TLS", "the server does not serve TLS at this address"),
    ],
)
def test_a_connection_that_can_not_be_protected_is_no_connection(
    server: DevServer, encrypted: DevServer, mutual: DevServer, certs: Path, foreign: Path, case: str, says: str
) -> None:
    ours = Security(ca=certs / "ca.pem")
    address, security = {
        "another CA": (encrypted.address, Security(ca=foreign / "ca.pem")),
        "system CA": (encrypted.address, Security(tls=True)),
        "another name": (at_any_address(encrypted), ours),
        "no certificate": (mutual.address, ours),
        "foreign certificate": (mutual.address, as_alice(foreign, ca=certs)),
        "no TLS": (server.address, ours),
    }[case]
    with pytest.raises(TLSError) as refused:
        list_workers(address, security)
    assert says in str(refused.value)
    assert isinstance(refused.value, ConnectionError)
    with pytest.raises(TLSError) as refused:  # at once, not when attaching has taken too long
        build().compile(server=address, security=security, name="unprotected")
    assert says in str(refused.value)


def test_plain_text_to_a_server_with_tls_names_the_remedy(encrypted: DevServer) -> None:
    with pytest.raises(ServerUnavailableError, match="when the server serves TLS, name its CA with ca=FILE"):
        list_workers(encrypted.address, Security(tls=False))


def test_a_server_that_does_not_answer_is_told_with_the_last_error() -> None:
    session = Session(server_at("127.0.0.1:1"), Manifest([], []), {})
    wait_until(lambda: session._problem is not None)
    with pytest.raises(
        ServerUnavailableError, match=r"is `graphd serve` running there\? The last error: .*127.0.0.1:1"
    ):
        session.wait_ready(0)
    session.close()


def test_new_certificates_are_taken_up(
    certs: Path, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "_INTERVAL", 0.0)
    files = tmp_path / "files"
    shutil.copytree(certs, files)
    mine = as_alice(files)
    with dev(flags=server_flags(certs, mutual=True), security=as_alice(certs)) as first:
        graph = build().compile(server=first.address, security=mine, name="renewed")
        assert graph.invoke({"log": []}, config("renewed-1")) == {"log": ["done"]}
    shutil.copytree(foreign, files, dirs_exist_ok=True)
    with dev(flags=server_flags(foreign, mutual=True), security=as_alice(foreign), port=first.port) as second:
        wait_until(lambda: len(list_workers(second.address, as_alice(foreign)).workers) == 1)
        list_workers(second.address, mine)
        assert not graph.attach().session.closed
    graph.detach()


@pytest.mark.parametrize("secret", ["", "t0-ken"])
async def test_calls_under_way_outlive_new_certificates(
    encrypted: DevServer, certs: Path, tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "_INTERVAL", 0.0)
    shutil.copy(certs / "ca.pem", tmp_path)
    mine = Security(tls=True, ca=tmp_path / "ca.pem", cert="", key="", token=secret, token_file="")
    go_on = threading.Event()
    graph = build(lambda state: {"log": [str(go_on.wait(60))]}).compile(
        server=encrypted.address, security=mine, name=f"outlives{secret}"
    )
    server = server_at(encrypted.address, mine)
    request = gs.StreamRequest(request_id=f"outlives{secret}")
    request.run.graph, request.run.thread_id, request.run.create_thread = graph.name, graph.name, True
    request.run.input.json = '{"log":[]}'
    events = server.astubs.graphs.Stream(request).__aiter__()
    opened = await events.__anext__()
    watched = server.stubs.graphs.Watch(gs.WatchRequest(thread_id=graph.name, run_id=opened.run_id, follow=True))
    next(watched)
    before = server.stubs
    with (tmp_path / "ca.pem").open("a") as file:
        file.write("\n")
    assert server.stubs is not before
    del before
    gc.collect()  # the old channels have only their calls
    go_on.set()
    assert [event async for event in events][-1].HasField("end")
    assert (await asyncio.to_thread(list, watched))[-1].HasField("end")
    graph.detach()


def test_an_identity_of_its_own_for_each_graph(server: DevServer) -> None:
    """Two programs in one process are two callers, on the same thread too."""
    with Gate(server.address, "ann", "bob") as gate:
        graphs = {
            user: build(lambda state, user=user: {"log": [user]}).compile(
                server=gate.address, security=Security(token=user), name=f"own-{user}"
            )
            for user in ("ann", "bob")
        }
        gate.calls.clear()
        for user, graph in graphs.items():
            assert graph.invoke({"log": []}, config(f"own-{user}")) == {"log": [user]}
            assert {header for _, header in gate.calls} == {f"Bearer {user}"}
            gate.calls.clear()
        for graph in graphs.values():
            graph.detach()


async def test_every_call_carries_the_token(
    server: DevServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "token"
    path.write_text("t0-ken\n")
    threads: set[threading.Thread] = set()

    def read() -> str:
        threads.add(threading.current_thread())
        return "t0-ken"

    for n, secret in enumerate((Security(token="t0-ken"), Security(token=read), Security(token_file=path))):
        with Gate(server.address, "t0-ken") as gate:
            await use_everything(server, gate.address, secret, f"token-{n}")
        assert {header for _, header in gate.calls} == {"Bearer t0-ken"}
        assert {"Connect", "CallGraph", "Stream", "GetState", "BulkUpdateState", "DeleteThread"} <= gate.methods()
    assert len(threads) > 1, "a function may block: it does not hold up the loop"
    assert "t0-ken" not in caplog.text


async def test_clients_and_workers_choose_a_tenant(tmp_path: Path) -> None:
    keys, policy = tmp_path / "keys.yaml", tmp_path / "access.yaml"
    policy.write_text('bindings: [{roles: [admin], principals: [boss], tenants: ["*"]}]')
    command = ["keys", "create", "--file", str(keys), "--name", "boss", "--tenant", "acme", "--tenant", "zenith"]
    made = subprocess.run([*graphd_command(), *command], check=True, capture_output=True, text=True)
    boss = Security(token=made.stdout.strip())
    with dev(flags=["--api-keys", str(keys), "--access", str(policy)], security=boss) as server:
        for tenant in ("", "zenith"):  # the same graphs and threads in each
            await use_everything(server, server.address, Security(token=boss.token, tenant=tenant), "tenant")
        with pytest.raises(AccessDeniedError) as denied:
            list_workers(server.address, Security(token=boss.token, tenant="other"))
        assert denied.value.metadata["rule"] == "tenant"


async def test_a_tenant_alone_is_sent(server: DevServer) -> None:
    await use_everything(server, server.address, Security(tenant="default"), "tenant-alone")
    with pytest.raises(AccessDeniedError):
        list_workers(server.address, Security(tenant="acme"))


async def test_a_cancelled_call_with_a_token_cancels_its_run(server: DevServer) -> None:
    begun = asyncio.Event()

    async def node(state: State) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    with Gate(server.address, "t0-ken") as gate:
        secret = Security(token=lambda: "t0-ken")
        graph = build(node).compile(server=gate.address, security=secret, name="token-cancel")
        call = asyncio.create_task(graph.ainvoke({"log": []}, config("token-cancel-1")))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "CancelRun" in gate.methods()
        run = call_unary(server_at(server.address).stubs.graphs.WaitRun, gs.WaitRunRequest(thread_id="token-cancel-1"))
        assert run.state == run_pb2.RUN_STATE_CANCELLED
        graph.detach()


def test_a_server_that_refuses_the_token_refuses_worker_and_client(server: DevServer) -> None:
    with Gate(server.address) as gate:
        with pytest.raises(UnauthenticatedError, match="the token is not good") as refused:
            build().compile(server=gate.address, security=Security(token="t0-ken"), name="refused")
        assert (refused.value.reason, refused.value.code) == ("TOKEN_INVALID", "UNAUTHENTICATED")
        assert "t0-ken" not in str(refused.value) + repr(refused.value)
        with pytest.raises(UnauthenticatedError):
            list_workers(gate.address, Security(token="t0-ken"))
        gate.refusal = (grpc.StatusCode.PERMISSION_DENIED, "ACCESS_DENIED")
        with pytest.raises(AccessDeniedError) as denied:
            build().compile(server=gate.address, security=Security(token="t0-ken"), name="refused")
        assert denied.value.reason == "ACCESS_DENIED" and isinstance(denied.value, PermissionError)
        with pytest.raises(AccessDeniedError):
            list_workers(gate.address, Security(token="t0-ken"))
        gate.refusal = (grpc.StatusCode.UNAUTHENTICATED, "OF_A_LATER_SERVER")
        with pytest.raises(UnauthenticatedError):
            list_workers(gate.address, Security(token="t0-ken"))


async def test_a_function_that_fails_ends_the_call_that_needs_the_token(server: DevServer) -> None:
    failing = threading.Event()

    def read() -> str:
        if failing.is_set():
            raise KeyError("of the program")
        return "t0-ken"

    with Gate(server.address, "t0-ken") as gate:
        graph = build().compile(server=gate.address, security=Security(token=read), name="failing")
        failing.set()
        with pytest.raises(UnauthenticatedError, match="failed with KeyError") as failed:
            graph.invoke({"log": []}, config("failing-1"))
        assert isinstance(failed.value.__cause__, KeyError)
        with pytest.raises(UnauthenticatedError, match="failed with KeyError"):
            await graph.ainvoke({"log": []}, config("failing-1"))
        with pytest.raises(UnauthenticatedError, match="failed with KeyError"):
            build().compile(server=gate.address, security=Security(token=read, tls=None), name="failing-2")
        failing.clear()
        assert graph.invoke({"log": []}, config("failing-2")) == {"log": ["done"]}
        graph.detach()


def test_a_worker_waits_for_a_token_to_be_replaced(
    server: DevServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(token, "_INTERVAL", 0.0)
    path = tmp_path / "token"
    path.write_text("old-t0-ken")
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def node(state: State) -> dict[str, Any]:
        runs.append(1)
        begun.set()
        assert go_on.wait(60)
        return {"log": ["done"]}

    with Gate(server.address, "old-t0-ken") as gate:
        graph = build(node).compile(server=gate.address, security=Security(token_file=path), name="rotated")
        request = server_at(server.address).stubs
        start_run(request, "rotated", "rotated-1")
        assert begun.wait(60)
        gate.accepted = {"new-t0-ken"}
        gate.calls.clear()
        gate.end_streams()
        go_on.set()
        wait_until(lambda: {"Connect", "CompleteTask"} <= gate.methods())
        wait_until(lambda: "refuses this worker" in caplog.text)
        assert {header for _, header in gate.calls} == {"Bearer old-t0-ken"}
        assert not graph.attach().session.closed, "it waits"
        path.write_text("new-t0-ken")
        wait = gs.WaitRunRequest(thread_id="rotated-1")
        wait.wait.seconds = 60
        assert call_unary(request.graphs.WaitRun, wait).output.json == '{"log":["done"]}'
        assert runs == [1], "the result is delivered late"
        assert graph.invoke({"log": []}, config("rotated-2")) == {"log": ["done"]}
        graph.detach()
    told = [r.getMessage() for r in caplog.records if "refuses this worker" in r.getMessage()]
    assert len(told) == 1, "a refusal is told once, however often it comes"
    assert "t0-ken" not in caplog.text


def start_run(stubs: Any, graph: str, thread: str) -> None:
    request = gs.StartRunRequest()
    request.run.graph, request.run.thread_id, request.run.create_thread = graph, thread, True
    request.run.input.json = '{"log":[]}'
    call_unary(stubs.graphs.StartRun, request)


def test_a_worker_that_serves_ends_when_it_was_never_taken(server: DevServer) -> None:
    program = """
import sys
from graphd import START, StateGraph
StateGraph(dict).add_node("node", dict).add_edge(START, "node").compile(name="never").serve()
"""
    with Gate(server.address) as gate:
        own = {"GRAPHD_SERVER": gate.address, "GRAPHD_TOKEN": "t0-ken"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ | own, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 1
    assert "UnauthenticatedError: the token is not good" in done.stderr and "t0-ken" not in done.stderr
