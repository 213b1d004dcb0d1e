"""Measures LangGraph Server's API of graphd beside ``langgraph dev`` and beside graphd's own gRPC, see README.md."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

import servers
from subjects import AgentServer, Native, Subject

DEV = "langgraph dev"
API = "graphd, LangGraph's SDK"
NATIVE = "graphd, own SDK"
LIMIT = "static answers, LangGraph's SDK"
PAIRS, CHAINS, FIRST = "questions with answers a second", "chains of ten nodes a second", "ms to the first event"

Key = tuple[str, str, str, int]  # what, subject, store, clients


async def rate(operation: Callable[[], Awaitable[object]], clients: int, seconds: float) -> float:
    """Operations a second of so many clients in turn, all of which end within the time or are waited for."""
    began = time.perf_counter()
    done = 0

    async def client() -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            await operation()
            done += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    return done / (time.perf_counter() - began)


class Bench:
    """The samples of all rounds."""

    def __init__(self, clients: list[int], seconds: float) -> None:
        self.clients, self.seconds = clients, seconds
        self.samples: dict[Key, list[float]] = defaultdict(list)

    async def measure(self, subject: Subject) -> None:
        """Takes one sample of all that a subject does."""

        def add(what: str, clients: int, value: float) -> None:
            self.samples[what, subject.name, subject.store, clients].append(value)

        for clients in self.clients:
            add(PAIRS, clients, await rate(subject.answer_question, clients, self.seconds))
            add(CHAINS, clients, await rate(subject.run_chain, clients, self.seconds))
        times = [await subject.await_first_event() for _ in range(5)]
        add(FIRST, 1, statistics.median(times) * 1000)

    def compare(self, key: Key, with_key: Key) -> tuple[float, float, float]:
        """The median of the ratios of single rounds, the lowest and the highest."""
        ratios = [a / b for a, b in zip(self.samples[key], self.samples[with_key], strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    def lines(self, stores: list[str]) -> list[str]:
        """The table of goals, and that of all figures."""
        out = [
            "|   | what | store | clients | beside | ratio | lowest, highest | goal |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for what in (PAIRS, CHAINS, FIRST):
            for store in stores:
                for clients in self.clients if what != FIRST else [1]:
                    key: Key = (what, API, store, clients)
                    for beside, goal in ((DEV, 20.0 if clients == 1 else 5.0), (NATIVE, 0.8), (LIMIT, 0.8)):
                        other: Key = (what, beside, store if beside == NATIVE else "memory", clients)
                        if other not in self.samples:
                            continue
                        out.append(line(what, store, clients, beside, self.compare(key, other), goal))
        out += [
            "",
            "| what | server and client | store | clients | median | lowest, highest |",
            "|---|---|---|---|---|---|",
        ]
        for (what, name, store, clients), values in self.samples.items():
            shown = f"{statistics.median(values):.3g} | {min(values):.3g}, {max(values):.3g}"
            out.append(f"| {what} | {name} | {store} | {clients} | {shown} |")
        return out


def line(what: str, store: str, clients: int, beside: str, ratio: tuple[float, float, float], goal: float) -> str:
    middle, lowest, highest = ratio
    if what == FIRST:  # less is better
        middle, lowest, highest = 1 / middle, 1 / highest, 1 / lowest
    mark = "✓" if middle >= goal else "✗"
    shown = f"{middle:.3g} | {lowest:.3g}, {highest:.3g}"
    return f"| {mark} | {what} | {store} | {clients} | {beside} | {shown} | ≥ {goal:g} |"


async def run(o: argparse.Namespace) -> None:
    bench = Bench(o.clients, o.seconds)
    with contextlib.ExitStack() as stack:
        subjects: list[Subject] = []
        for store in o.stores:
            address, url = stack.enter_context(servers.graphd_server(o.graphd, store))
            subjects += [AgentServer(API, store, url), Native(NATIVE, store, address)]
        subjects.append(AgentServer(LIMIT, "memory", stack.enter_context(servers.static_server())))
        if o.dev:
            subjects.append(AgentServer(DEV, "memory", stack.enter_context(servers.langgraph_dev(max(o.clients)))))
        for subject in subjects:
            await subject.answer_question()
            await subject.run_chain()
        for round_number in range(o.rounds):
            for subject in subjects if round_number % 2 == 0 else reversed(subjects):
                await bench.measure(subject)
            print(f"bench/langgraph: round {round_number + 1} of {o.rounds}", file=sys.stderr, flush=True)
    print(f"{o.rounds} rounds of {o.seconds:g} s; the clients are one Python process\n")
    print("\n".join(bench.lines(o.stores)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    # servers run in folders of their own
    parser.add_argument(
        "--graphd", default=os.path.abspath("bin/graphd"), type=os.path.abspath, help="the binary (bin/graphd)"
    )
    parser.add_argument(
        "--stores",
        default="memory,sqlite",
        type=lambda s: s.split(","),
        help="memory, sqlite, or URLs of Redis (memory,sqlite)",
    )
    parser.add_argument(
        "--clients", default="1,16", type=lambda s: [int(n) for n in s.split(",")], help="numbers of clients (1,16)"
    )
    parser.add_argument("--rounds", default=5, type=int, help="rounds, each of which measures everything (5)")
    parser.add_argument("--seconds", default=3.5, type=float, help="how long a sample takes (3.5)")
    parser.add_argument("--no-dev", dest="dev", action="store_false", help="without langgraph dev")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
