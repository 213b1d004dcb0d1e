"""What is measured: one server by one client, each with the same three operations."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from typing import Any

from graphs import Declaration
from langgraph_sdk import get_client

import graphd


class Subject(ABC):
    """A server by a client. Its operations check what comes of them. The processes are a server and its worker."""

    def __init__(self, name: str, store: str, processes: list[int]) -> None:
        self.name, self.store, self.processes = name, store, processes

    @abstractmethod
    async def answer_question(self) -> None:
        """Starts a run in a new thread, answers its question, and waits for its end."""

    @abstractmethod
    async def run_chain(self) -> None:
        """Runs ten nodes in a new thread."""

    @abstractmethod
    async def await_first_event(self) -> float:
        """Seconds from the start of a run in a new thread to the update of its first node."""


def check(got: object, want: object) -> None:
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


class AgentServer(Subject):
    """A server with LangGraph Server's API, by LangGraph's SDK."""

    def __init__(self, name: str, store: str, url: str, processes: list[int]) -> None:
        super().__init__(name, store, processes)
        self.client: Any = get_client(url=url)

    async def create_thread(self) -> str:
        return str((await self.client.threads.create())["thread_id"])

    async def answer_question(self) -> None:
        thread = await self.create_thread()
        asked = await self.client.runs.wait(thread, "question", input={"x": 0})
        check(asked["__interrupt__"][0]["value"], 1)
        answered = await self.client.runs.wait(thread, "question", command={"resume": "yes"})
        check(answered, {"x": 2, "answer": "yes"})

    async def run_chain(self) -> None:
        check(await self.client.runs.wait(await self.create_thread(), "chain", input={"x": 0}), {"x": 10})

    async def await_first_event(self) -> float:
        thread = await self.create_thread()
        began, took = time.perf_counter(), 0.0
        async for part in self.client.runs.stream(thread, "chain", input={"x": 0}, stream_mode="updates"):
            if part.event == "updates" and not took:
                took = time.perf_counter() - began
                check(part.data, {"n0": {"x": 1}})
        return took


class Native(Subject):
    """graphd by its own SDK over gRPC. Before each operation the client works for some seconds more."""

    def __init__(self, name: str, store: str, server: str, processes: list[int]) -> None:
        super().__init__(name, store, processes)
        self.work = 0.0
        declared = Declaration(graphd, graphd.interrupt)
        self.question = declared.question().compile(server=server, name="question", worker=False)
        self.chain = declared.chain().compile(server=server, name="chain", worker=False)

    def begin_call(self) -> dict[str, Any]:
        """Works for the client as long as it is told to, and returns the config of a new thread."""
        until = time.thread_time() + self.work
        while time.thread_time() < until:
            pass
        return {"configurable": {"thread_id": str(uuid.uuid4())}}

    async def answer_question(self) -> None:
        thread = self.begin_call()
        asked = await self.question.ainvoke({"x": 0}, thread)
        check(asked["__interrupt__"][0].value, 1)
        check(await self.question.ainvoke(graphd.Command(resume="yes"), thread), {"x": 2, "answer": "yes"})

    async def run_chain(self) -> None:
        check(await self.chain.ainvoke({"x": 0}, self.begin_call()), {"x": 10})

    async def await_first_event(self) -> float:
        began, took = time.perf_counter(), 0.0
        async for update in self.chain.astream({"x": 0}, self.begin_call(), stream_mode="updates"):
            if not took:
                took = time.perf_counter() - began
                check(update, {"n0": {"x": 1}})
        return took
