"""Who waits for a worker that is not there is told so."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from graphd import START, Command, InMemorySaver, MessagesState, StateGraph, interrupt
from graphd.dev import DevServer


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
        again = graph(server, name)
        again.attach()
        waiting.join(60)
        assert done, "the run goes on when a worker has come"
        assert len(heard(caplog)) == 1
