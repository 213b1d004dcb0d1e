"""Programs in which tasks, entrypoints and graphs call each other, and async programs."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from .kit import Kit, program


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


@program
def tasks_that_call_tasks(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    def step(name: str) -> str:
        ran.append(name)
        return name.upper()

    @kit.task
    def outer(name: str) -> list[Any]:
        first = step(name).result()
        return [first, kit.lib.interrupt(f"after {first}?"), step(f"{name} again").result()]

    @kit.entrypoint()
    def flow(name: str) -> list[Any]:
        return [*outer(name).result(), kit.lib.interrupt("all?"), step("last").result()]

    at = kit.thread()
    kit.stream(flow, "a", at, ["updates", "tasks"])
    kit.stream(flow, kit.lib.Command(resume="yes"), at, ["updates"])
    kit.stream(flow, kit.lib.Command(resume="all"), at, ["updates"])
    kit.tell(ran)


@program
def async_tasks(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        ran.append("later")
        return x * 2

    @kit.task
    def plain(x: int) -> int:
        ran.append("plain")
        return x * 3

    @kit.entrypoint()
    async def flow(x: int) -> Any:
        futures = [later(x), plain(x), later(x + 1)]
        assert all(isinstance(f, asyncio.Future) for f in futures)
        results = list(await asyncio.gather(*futures))
        return [*results, kit.lib.interrupt("enough?"), await later(10)]

    at = kit.thread()
    kit.astream(flow, 1, at, ["updates", "tasks"], unordered=True)
    kit.astream(flow, kit.lib.Command(resume="yes"), at, ["updates"])
    kit.tell(sorted(ran))
    kit.tell(asyncio.run(flow.ainvoke(2, kit.thread())))


@program
def async_tasks_that_ask(kit: Kit) -> None:
    @kit.task
    async def ask(question: str) -> Any:
        await asyncio.sleep(0)
        return kit.lib.interrupt(question)

    @kit.task
    async def outer(question: str) -> Any:
        return [await ask(question), await ask(f"{question} really?")]

    @kit.entrypoint()
    async def flow(question: str) -> Any:
        return await outer(question)

    at = kit.thread()
    kit.astream(flow, "a", at)
    kit.astream(flow, kit.lib.Command(resume=1), at)
    kit.astream(flow, kit.lib.Command(resume=2), at)


@program
def async_tasks_of_plain_entrypoints(kit: Kit) -> None:
    @kit.task
    async def later(x: int) -> int:
        await asyncio.sleep(0)
        return x * 2

    @kit.entrypoint()
    def flow(x: int) -> int:
        return later(x).result() + 1  # type: ignore[no-any-return]

    kit.tell(asyncio.run(flow.ainvoke(1, kit.thread())))


@program
def tasks_of_nodes(kit: Kit) -> None:
    ran: list[int] = []

    @kit.task
    def double(x: int) -> int:
        ran.append(x)
        return x * 2

    def node(state: Log) -> dict[str, Any]:
        first = double(2).result()
        return {"log": [first, kit.lib.interrupt("more?"), double(3).result()]}

    builder = kit.lib.StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge("__start__", "node")
    graph = kit.compile(builder)
    at = kit.thread()
    kit.stream(graph, {"log": []}, at, ["updates", "tasks"])
    kit.stream(graph, kit.lib.Command(resume="yes"), at, ["updates"])
    kit.tell(ran)


@program
def entrypoints_that_call_entrypoints(kit: Kit) -> None:
    ran: list[int] = []

    @kit.task
    def double(x: int) -> int:
        ran.append(x)
        return x * 2

    @kit.entrypoint(saver=None)
    def inner(x: int) -> int:
        return double(x).result() + kit.lib.interrupt("how many more?")  # type: ignore[no-any-return]

    @kit.entrypoint()
    def flow(x: int) -> list[Any]:
        return [inner.invoke(x), double(x + 1).result()]

    at = kit.thread()
    kit.tell(flow.invoke(1, at))
    kit.stream(flow, kit.lib.Command(resume=100), at, "updates")
    kit.tell(ran)


@program
def graphs_in_tasks(kit: Kit) -> None:
    ran: list[Any] = []

    def node(state: Log) -> dict[str, Any]:
        ran.append(state["log"])
        return {"log": [kit.lib.interrupt(f"about {state['log'][0]}")]}

    builder = kit.lib.StateGraph(Log)
    builder.add_node("node", node)
    builder.add_edge("__start__", "node")
    graph = builder.compile()

    @kit.task
    def review(name: str) -> Any:
        return graph.invoke({"log": [name]})["log"]

    @kit.entrypoint()
    def flow(names: list[str]) -> Any:
        return [review(name).result() for name in names]

    at = kit.thread()
    kit.tell(flow.invoke(["a", "b"], at))
    kit.tell(flow.invoke(kit.lib.Command(resume="yes"), at), flow.invoke(kit.lib.Command(resume="no"), at))


@program
def an_entrypoint_as_a_node(kit: Kit) -> None:
    @kit.task
    def double(x: int) -> int:
        return x * 2

    @kit.entrypoint(saver=None)
    def work(state: Log) -> Log:
        return {"log": [double(4).result()]}

    builder = kit.lib.StateGraph(Log)
    builder.add_node("work", work)
    builder.add_edge("__start__", "work")
    graph = kit.compile(builder)
    kit.tell(graph.invoke({"log": [1]}, kit.thread()))
    for levels, mode, item in graph.stream({"log": []}, kit.thread(), stream_mode=["updates"], subgraphs=True):
        kit.tell([[level.split(":")[0] for level in levels], mode, item])


@program
def another_process_goes_on(kit: Kit) -> None:
    """The worker that asked is gone; another one of the same code has the answer."""
    ran: list[str] = []
    saver = kit.saver()

    def build(process: str) -> Any:
        @kit.task
        def prepare(x: int) -> int:
            ran.append(f"prepare in {process}")
            return x + 1

        @kit.task
        def ask(x: int) -> Any:
            ran.append(f"ask in {process}")
            return kit.lib.interrupt(x)

        @kit.entrypoint(saver=saver, name="functional-restart")
        def flow(x: int) -> list[Any]:
            return [prepare(x).result(), ask(x).result()]

        return flow

    at, first = kit.thread(), build("first")
    kit.tell(first.invoke(1, at))
    if kit.root == "graphd":
        first.detach()
    second = build("second")
    kit.state(second, at)
    kit.tell(second.invoke(kit.lib.Command(resume="yes"), at), ran)


@program
def streams_of_inner_entrypoints(kit: Kit) -> None:
    @kit.task
    def double(x: int) -> int:
        return x * 2

    @kit.entrypoint(saver=None)
    def inner(x: int) -> int:
        return double(x).result() + 1  # type: ignore[no-any-return]

    @kit.entrypoint()
    def flow(x: int) -> Any:
        return list(inner.stream(x, stream_mode=["updates", "values"]))

    for levels, mode, item in flow.stream(1, kit.thread(), stream_mode=["updates"], subgraphs=True):
        kit.tell([[level.split(":")[0] for level in levels], mode, item])


@program
def async_entrypoints_that_call_entrypoints(kit: Kit) -> None:
    @kit.task
    async def double(x: int) -> int:
        return x * 2

    @kit.entrypoint(saver=None)
    async def inner(x: int) -> int:
        return await double(x) + kit.lib.interrupt("more?")  # type: ignore[no-any-return]

    @kit.task
    async def call(x: int) -> int:
        return await inner.ainvoke(x)  # type: ignore[no-any-return]

    @kit.entrypoint()
    async def flow(x: int) -> Any:
        return [await call(x), await double(x + 1)]

    async def work() -> None:
        at = kit.thread()
        kit.tell(await flow.ainvoke(1, at), await flow.ainvoke(kit.lib.Command(resume=100), at))

    asyncio.run(work())
