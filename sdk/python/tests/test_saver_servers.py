"""GraphdSaver and its servers: which one, as whom, and while it is away."""

from __future__ import annotations

import operator
import os
import subprocess
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from graphd import Security
from graphd.dev import DevServer, dev, graphd_command, shared_dev_server
from graphd.errors import AccessDeniedError

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from graphd.checkpoint.langgraph import GraphdSaver
from tests.counted_saver import counted, new_config, put


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def build(saver: Any, between: Any = lambda: None) -> Any:
    def first(state: State) -> dict[str, Any]:
        between()
        return {"log": ["first"]}

    def second(state: State) -> dict[str, Any]:
        return {"log": [f"second: {interrupt('go on?')}"]}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    return builder.compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def test_a_run_goes_on_while_its_server_restarts(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'threads.db'}"
    servers = [dev(store=store)]

    def restart() -> None:
        servers[-1].close()
        servers.append(dev(store=store, port=servers[0].port))

    try:
        graph = build(GraphdSaver(servers[0].address), restart)
        graph.invoke({"log": []}, config("restart"))
        assert len(servers) == 2
        assert graph.invoke(Command(resume="yes"), config("restart"))["log"] == ["first", "second: yes"]
        assert len(list(graph.get_state_history(config("restart")))) == 4
    finally:
        servers[-1].close()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_durability(server: DevServer, durability: Any) -> None:
    told = []
    for saver in (InMemorySaver(), GraphdSaver(server.address)):
        graph = build(saver)
        where = config(f"durability-{durability}")
        graph.invoke({"log": []}, where, durability=durability)
        graph.invoke(Command(resume="yes"), where, durability=durability)
        told.append([(s.values, s.next, s.metadata["step"]) for s in graph.get_state_history(where)])
    assert told[0] == told[1]


def test_what_callers_may(tmp_path: Path) -> None:
    keys, policy = tmp_path / "keys.yaml", tmp_path / "access.yaml"
    policy.write_text("bindings: [{roles: [author], principals: [ann]}, {roles: [operator], principals: [bob]}]")
    tokens = {}
    for name in ("ann", "bob"):
        command = [*graphd_command(), "keys", "create", "--file", str(keys), "--name", name]
        tokens[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    ann, bob = (Security(token=tokens[name]) for name in ("ann", "bob"))
    with dev(flags=["--api-keys", str(keys), "--access", str(policy)], security=bob) as server:
        saver = GraphdSaver(server.address, security=bob)
        with pytest.raises(AccessDeniedError):
            build(saver).invoke({"log": []}, config("roles"))
        GraphdSaver(server.address, security=ann).setup()
        build(saver).invoke({"log": []}, config("roles"))
        saver.prune(["roles"])
        saver.copy_thread("roles", "copy")
        saver.delete_thread("roles")
        assert build(saver).invoke(Command(resume="yes"), config("copy"))["log"] == ["first", "second: yes"]


def test_which_server_it_is(server: DevServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHD_SERVER", raising=False)
    assert GraphdSaver().address == shared_dev_server().address
    monkeypatch.setenv("GRAPHD_SERVER", server.address)
    assert GraphdSaver().address == os.environ["GRAPHD_SERVER"]
    with GraphdSaver.from_conn_string(server.address) as saver:
        saver.setup()
        saver.setup()
        build(saver).invoke({"log": []}, config("named"))
        assert build(GraphdSaver()).get_state(config("named")).next == ("second",)


def test_the_first_put_makes_the_graph_and_the_thread() -> None:
    with dev() as fresh:
        saver, stubs = counted(fresh)
        put(saver, new_config())
        assert stubs.take_calls() == {"BulkUpdateState": 2, "CreateThread": 2, "PutGraph": 1}


def test_a_thread_that_the_server_does_not_copy_is_copied_by_the_saver() -> None:
    with dev(flags=["--max-copy-bytes", "1000"]) as small:
        saver = GraphdSaver(small.address)
        config = put(saver, put(saver, new_config(), value="x" * 5000), value="y" * 5000)
        saver.put_writes(config, [("x", 1)], "task")
        saver.copy_thread(config["configurable"]["thread_id"], "copy")
        copied, original = (
            list(saver.list(new_config(thread=t))) for t in ("copy", config["configurable"]["thread_id"])
        )
    assert [(c.checkpoint, c.metadata, c.pending_writes) for c in copied] == [
        (o.checkpoint, o.metadata, o.pending_writes) for o in original
    ]


async def test_it_is_a_context_for_async_programs(server: DevServer) -> None:
    async with GraphdSaver.from_conn_string(server.address) as saver:
        await build(saver).ainvoke({"log": []}, config("async-named"), interrupt_before=["second"])
        assert (await saver.aget_tuple(config("async-named"))) is not None
