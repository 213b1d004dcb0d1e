"""Programs whose tasks fail, are tried again, or need not run."""

from __future__ import annotations

from typing import Any

from .kit import Boom, Kit, program


@program
def retries_of_tasks(kit: Kit) -> None:
    ran: list[str] = []
    policy = kit.lib.RetryPolicy(initial_interval=0.01, max_attempts=3, jitter=False)

    @kit.task(retry_policy=policy)
    def flaky(x: int) -> int:
        ran.append("flaky")
        if len(ran) < 3:
            raise Boom("not yet")
        return x

    @kit.task(retry_policy=[kit.lib.RetryPolicy(initial_interval=0.01, retry_on=KeyError), policy])
    def hopeless(x: int) -> int:
        ran.append("hopeless")
        raise Boom("never")

    @kit.task(retry_policy=kit.lib.RetryPolicy(initial_interval=0.01, retry_on=KeyError))
    def other(x: int) -> int:
        ran.append("other")
        raise Boom("of another kind")

    @kit.entrypoint()
    def flow(x: int) -> Any:
        result: list[Any] = [flaky(x).result()]
        for task in (hopeless, other):
            try:
                task(x).result()
            except Boom as error:
                result.append(str(error))
        return result

    kit.stream(flow, 1, kit.thread(), ["updates", "tasks"])
    kit.tell(ran)


@program
def retries_of_the_entrypoint(kit: Kit) -> None:
    tries: list[int] = []

    @kit.entrypoint(retry_policy=kit.lib.RetryPolicy(initial_interval=0.01, max_attempts=2, jitter=False))
    def flow(x: int) -> int:
        tries.append(x)
        if len(tries) < 2:
            raise Boom("once")
        return len(tries)

    kit.tell(flow.invoke(1, kit.thread()), tries)


@program
def a_failure_keeps_finished_tasks(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    def good(x: int) -> int:
        ran.append("good")
        return x

    @kit.task
    def bad(x: int) -> int:
        ran.append("bad")
        if ran.count("bad") < 2:
            raise Boom("broken")
        return x + 1

    @kit.entrypoint()
    def flow(x: int) -> list[int]:
        return [good(x).result(), bad(x).result()]

    at = kit.thread()
    kit.stream(flow, 1, at, ["updates", "tasks"])
    kit.state(flow, at)
    kit.stream(flow, None, at, "updates")
    kit.tell(ran)


@program
def a_failure_that_is_caught(kit: Kit) -> None:
    ran: list[str] = []

    @kit.task
    def bad(x: int) -> int:
        ran.append("bad")
        raise Boom("broken")

    @kit.entrypoint()
    def flow(x: int) -> Any:
        try:
            bad(x).result()
        except Boom as error:
            return [str(error), kit.lib.interrupt("go on?")]

    at = kit.thread()
    kit.stream(flow, 1, at)
    kit.stream(flow, kit.lib.Command(resume="yes"), at)
    kit.tell(ran)


@program
def tasks_that_nobody_waits_for(kit: Kit) -> None:
    @kit.task
    def bad(x: int) -> int:
        raise Boom("unseen")

    @kit.task
    def good(x: int) -> int:
        return x * 2

    @kit.entrypoint()
    def flow(x: int) -> str:
        bad(x)
        good(x)
        return "done"

    kit.stream(flow, 7, kit.thread(), ["updates", "tasks"], unordered=True)


@program
def cached_tasks(kit: Kit) -> None:
    ran: list[int] = []
    cache = kit.cache()

    @kit.task(cache_policy=kit.lib.CachePolicy())
    def slow(x: int) -> int:
        ran.append(x)
        return len(ran)

    @kit.entrypoint(saver=None, cache=cache)
    def flow(x: int) -> list[int]:
        return [slow(x).result(), slow(x + 1).result()]

    @kit.entrypoint(saver=None)
    def uncached(x: int) -> int:
        return slow(x).result()  # type: ignore[no-any-return]

    kit.stream(flow, 1, None, ["updates", "tasks"])
    kit.stream(flow, 1, None, ["updates", "tasks"])
    kit.tell(uncached.invoke(1))
    slow.clear_cache(cache)
    kit.tell(flow.invoke(1), ran)


@program
def a_cached_entrypoint(kit: Kit) -> None:
    ran: list[int] = []

    @kit.entrypoint(saver=None, cache=kit.cache(), cache_policy=kit.lib.CachePolicy(key_func=lambda x: str(x["key"])))
    def flow(x: dict[str, int]) -> int:
        ran.append(x["key"])
        return len(ran)

    kit.stream(flow, {"key": 1, "n": 1}, None, "updates")
    kit.stream(flow, {"key": 1, "n": 2}, None, "updates")
    kit.stream(flow, {"key": 2, "n": 2}, None, "updates")
    kit.tell(ran)


@program
def timeouts_of_async_tasks(kit: Kit) -> None:
    import asyncio

    @kit.task(timeout=0.05)
    async def stuck(x: int) -> int:
        await asyncio.Event().wait()
        return x

    @kit.task(timeout=60)
    async def quick(x: int) -> int:
        return x

    @kit.entrypoint()
    async def flow(x: int) -> Any:
        try:
            await stuck(x)
        except kit.lib.NodeTimeoutError as error:
            return [error.node, error.kind, error.timeout, await quick(x)]

    kit.tell(asyncio.run(flow.ainvoke(1, kit.thread())))
