"""What tests of secured servers have in common."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from graphd import START, InMemorySaver, Security, StateGraph, get_stream_writer
from graphd._gen.v1 import registry_service_pb2 as rs
from graphd.dev import DevServer, graphd_command
from graphd.transport.server import call_unary, server_at
from tests.test_worker import State, config


def make_certificates(folder: Path) -> Path:
    command = [*graphd_command(), "certs", "--dir", str(folder), "--client", "alice"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def server_flags(certs: Path, *, mutual: bool = False) -> list[str]:
    flags = ["--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server-key.pem")]
    return [*flags, "--tls-client-ca", str(certs / "ca.pem")] if mutual else flags


def build(node: Any = lambda state: {"log": ["done"]}) -> StateGraph:
    return StateGraph(State).add_node("node", node).add_edge(START, "node")


def list_workers(address: str, security: Security) -> Any:
    return call_unary(server_at(address, security).stubs.registry.ListWorkers, rs.ListWorkersRequest())


async def use_everything(server: DevServer, address: str, security: Security, name: str) -> None:
    """Calls of all kinds, by a client and by its worker."""
    inner = build(lambda state: {"log": ["inner"]}).compile(name=f"{name}-inner")

    def node(state: State) -> dict[str, Any]:
        get_stream_writer()("note")
        return {"log": inner.invoke({"log": []})["log"]}

    saver = InMemorySaver(server=address, security=security)
    graph = build(node).compile(saver, name=name)
    assert graph.invoke({"log": []}, config(f"{name}-1")) == {"log": ["inner"]}
    items = [item async for item in graph.astream({"log": []}, config(f"{name}-2"), stream_mode="custom")]
    assert items == ["note"]
    assert graph.get_state(config(f"{name}-1")).values == {"log": ["inner"]}
    graph.update_state(config(f"{name}-1"), {"log": ["written"]}, as_node="node")
    saver.copy_thread(f"{name}-1", f"{name}-3")
    assert list(graph.get_state_history(config(f"{name}-3")))
    saver.delete_thread(f"{name}-3")
    inner.detach()
    graph.detach()
