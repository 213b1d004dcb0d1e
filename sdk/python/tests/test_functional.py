"""Entrypoints and tasks."""

from __future__ import annotations

from typing import Any

from graphd.checkpoint.memory import InMemorySaver
from graphd.dev import DevServer
from graphd.func import entrypoint, task
from graphd.types import Command, interrupt


def config(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def test_a_finished_task_does_not_run_again_after_a_question(server: DevServer) -> None:
    ran: list[Any] = []

    @task
    def double(x: int) -> int:
        ran.append(x)
        return x * 2

    @entrypoint(InMemorySaver(server=server.address), name="func-once")
    def flow(x: int) -> Any:
        first = double(x).result()
        answer = interrupt({"first": first})
        return [first, answer, double(first).result()]

    at = config("func-once-1")
    asked = flow.invoke(3, at)
    assert [q.value for q in asked["__interrupt__"]] == [{"first": 6}]
    assert list(flow.stream(Command(resume="go"), at)) == [{"double": 12}, {"flow": [6, "go", 12]}]
    assert ran == [3, 6]
    assert flow.get_state(at).values == [6, "go", 12]
