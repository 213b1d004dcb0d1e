"""Who waits for a worker that is not there is told so."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from graphd import END, START, Client, Command, InMemorySaver, MessagesState, StateGraph, interrupt
from graphd.dev import DevServer
from graphd.errors import GraphdError


def graph(server: DevServer, name: str, **options: Any) -> Any:
    def pay(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", interrupt("sure?"))]}

    builder = StateGraph(MessagesState).add_node("pay", pay).add_edge(START, "pay")
    return builder.compile(InMemorySaver(server=server.address), name=name, **options)


def heard(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "graphd.client"]


@pytest.mark.parametrize("how", ["invoke", "stream", "ainvoke"])
def test_a_thread_of_another_version_says_what_it_waits_for(
    server: DevServer, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    name = f"lonely-{how}"
    config = {"configurable": {"thread_id": name}}
    old = graph(server, name)
    old.invoke({"messages": ["go"]}, config)
    old.detach()
    new = graph(server, name, drift="ask_again")
    answer = Command(resume="yes")
    done: list[Any] = []
    calls = {
        "invoke": lambda: new.invoke(answer, config),
        "stream": lambda: list(new.stream(answer, config, stream_mode="updates")),
        "ainvoke": lambda: asyncio.run(new.ainvoke(answer, config)),
    }
    with caplog.at_level(logging.WARNING, "graphd.client"):
        waiting = threading.Thread(target=lambda: done.append(calls[how]()), daemon=True)
        waiting.start()
        deadline = time.monotonic() + 60
        while not heard(caplog) and time.monotonic() < deadline:
            time.sleep(0.05)
        (text,) = heard(caplog)
        assert text.startswith(f"thread {name!r}, node 'pay': no connected worker serves version ")
        assert f"of graph {name}; those that are connected serve " in text
        assert "drift of compile" in text
        old, own = Client(server.address).graphs.get(name).versions
        assert f"Start a worker that serves version {old}, or move the thread" in text
        assert text.endswith(f"with `graphd run {name}@{own} --thread {name} --on-busy cancel`")
        again = graph(server, name)
        again.attach()
        waiting.join(60)
        assert done, "the run goes on when a worker has come"
        assert len(heard(caplog)) == 1


def joined(old: list[str], new: list[str]) -> list[str]:
    return old + new


class Log(TypedDict):
    log: Annotated[list[str], joined]


@pytest.mark.parametrize("what", ["a condition after START", "the reducer of a key"])
def test_what_is_no_node_is_named_as_what_it_is(server: DevServer, caplog: pytest.LogCaptureFixture, what: str) -> None:
    name = f"nameless-{what.split()[-1]}"
    builder = StateGraph(Log).add_node("end", lambda state: {})
    if "condition" in what:
        builder = StateGraph(MessagesState).add_node("end", lambda state: {})
        builder.add_conditional_edges(START, lambda state: "end")
    else:
        builder.add_edge(START, "end")
    graph = builder.add_edge("end", END).compile(server=server.address, name=name)
    graph.attach()
    graph.detach()
    client = Client(server.address)
    given = {"log": ["a"]} if "reducer" in what else {"messages": ["hi"]}

    def read() -> None:
        with contextlib.suppress(GraphdError), client.runs.stream(name, given, thread_id=name) as stream:
            list(stream)

    with caplog.at_level(logging.WARNING, "graphd.client"):
        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        deadline = time.monotonic() + 60
        while not heard(caplog) and time.monotonic() < deadline:
            time.sleep(0.05)
        client.runs.cancel(name, wait=True)
        reading.join(60)
    (text,) = heard(caplog)
    assert text.startswith(f"thread {name!r}, {what}: no worker of graph {name} is connected")
    assert text.endswith(f"with `graphd run {name}@VERSION --thread {name} --on-busy cancel`")
