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
from dataclasses import dataclass

import servers
from subjects import AgentServer, Native, Subject

DEV = "langgraph dev"
API = "graphd, LangGraph's SDK"
NATIVE = "graphd, own SDK"
LIMIT = "static answers, LangGraph's SDK"
SLOWED = "graphd, own SDK with the clients' work of LangGraph's"
PAIRS, CHAINS, FIRST = "questions with answers a second", "chains of ten nodes a second", "ms to the first event"

Key = tuple[str, str, str, int]  # what, subject, store, clients


@dataclass
class Sample:
    """What so many operations in a time have cost."""

    rate: float  # operations a second
    processor: list[float]  # seconds for each operation: of the clients, and of each process of the subject


def processor_times(processes: list[int]) -> list[float]:
    return [time.process_time(), *map(servers.processor_time, processes)]


async def sample(
    operation: Callable[[], Awaitable[object]], clients: int, seconds: float, processes: list[int]
) -> Sample:
    """Operations of so many clients in turn, all of which end within the time or are waited for."""
    before, began = processor_times(processes), time.perf_counter()
    done = 0

    async def client() -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            await operation()
            done += 1

    await asyncio.gather(*(client() for _ in range(clients)))
    rate = done / (time.perf_counter() - began)
    return Sample(rate, [(b - a) / done for a, b in zip(before, processor_times(processes), strict=True)])


class Bench:
    """The samples of all rounds."""

    def __init__(self, clients: list[int], seconds: float) -> None:
        self.clients, self.seconds = clients, seconds
        self.samples: dict[Key, list[float]] = defaultdict(list)
        self.processor: dict[Key, list[list[float]]] = defaultdict(list)

    async def measure(self, subject: Subject) -> None:
        """Takes one sample of all that a subject does."""

        def add(what: str, clients: int, value: float) -> None:
            self.samples[what, subject.name, subject.store, clients].append(value)

        for clients in self.clients:
            for what, operation in ((PAIRS, subject.answer_question), (CHAINS, subject.run_chain)):
                if isinstance(subject, Native) and subject.name == SLOWED:
                    subject.work = self.missing_work(what, subject.store, clients)
                taken = await sample(operation, clients, self.seconds, subject.processes)
                add(what, clients, taken.rate)
                self.processor[what, subject.name, subject.store, clients].append(taken.processor)
        if subject.name == SLOWED:
            return
        times = [await subject.await_first_event() for _ in range(5)]
        add(FIRST, 1, statistics.median(times) * 1000)

    def missing_work(self, what: str, store: str, clients: int) -> float:
        """Seconds for which LangGraph's SDK works longer than graphd's for an operation, whatever the server does."""
        theirs, ours = self.processor[what, LIMIT, "memory", clients], self.processor[what, NATIVE, store, clients]
        return max(0.0, statistics.median(t[0] for t in theirs) - statistics.median(t[0] for t in ours))

    def compare(self, key: Key, with_key: Key) -> tuple[float, float, float]:
        """The median of the ratios of single rounds, the lowest and the highest."""
        ratios = [a / b for a, b in zip(self.samples[key], self.samples[with_key], strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)

    def lines(self, stores: list[str]) -> list[str]:
        """The table of goals, and that of all figures."""
        out = [
            "|   | what | store | clients | of | beside | ratio | lowest, highest | goal |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for what in (PAIRS, CHAINS, FIRST):
            for store in stores:
                for clients in self.clients if what != FIRST else [1]:
                    key: Key = (what, API, store, clients)
                    for beside, goal in (
                        (DEV, 20.0 if clients == 1 else 5.0),
                        (NATIVE, 0.8),
                        (SLOWED, 0.8),
                        (LIMIT, 0.8),
                    ):
                        other: Key = (what, beside, store if beside in (NATIVE, SLOWED) else "memory", clients)
                        if other in self.samples:
                            out.append(line(what, store, clients, API, beside, self.compare(key, other), goal))
                    slowed, own = (what, SLOWED, store, clients), (what, NATIVE, store, clients)
                    if slowed in self.samples:
                        out.append(line(what, store, clients, SLOWED, NATIVE, self.compare(slowed, own), 0.8))
        out += [
            "",
            "| what | server and client | store | clients | median | lowest, highest |",
            "|---|---|---|---|---|---|",
        ]
        for (what, name, store, clients), values in self.samples.items():
            shown = f"{statistics.median(values):.3g} | {min(values):.3g}, {max(values):.3g}"
            out.append(f"| {what} | {name} | {store} | {clients} | {shown} |")
        return out

    def processor_lines(self) -> list[str]:
        """The table of what each operation costs which process."""
        out = [
            "| what | server and client | store | clients | clients, ms | server, ms | worker, ms |",
            "|---|---|---|---|---|---|---|",
        ]
        for (what, name, store, clients), taken in self.processor.items():
            costs = [f"{statistics.median(of) * 1000:.2f}" for of in zip(*taken, strict=True)]
            costs += [""] * (3 - len(costs))
            out.append(f"| {what} | {name} | {store} | {clients} | {' | '.join(costs)} |")
        return out


def line(
    what: str, store: str, clients: int, of: str, beside: str, ratio: tuple[float, float, float], goal: float
) -> str:
    middle, lowest, highest = ratio
    if what == FIRST:  # less is better
        middle, lowest, highest = 1 / middle, 1 / highest, 1 / lowest
    mark = "✓" if middle >= goal else "✗"
    shown = f"{middle:.3g} | {lowest:.3g}, {highest:.3g}"
    return f"| {mark} | {what} | {store} | {clients} | {of} | {beside} | {shown} | ≥ {goal:g} |"


async def run(o: argparse.Namespace) -> None:
    bench = Bench(o.clients, o.seconds)
    with contextlib.ExitStack() as stack:
        subjects: list[Subject] = []
        slowed: list[Native] = []
        for store in o.stores:
            address, url, processes = stack.enter_context(servers.graphd_server(o.graphd, store))
            subjects += [AgentServer(API, store, url, processes), Native(NATIVE, store, address, processes)]
            slowed.append(Native(SLOWED, store, address, processes))
        subjects.append(AgentServer(LIMIT, "memory", stack.enter_context(servers.static_server()), []))
        if o.dev:
            url = stack.enter_context(servers.langgraph_dev(max(o.clients)))
            subjects.append(AgentServer(DEV, "memory", url, []))
        for subject in subjects:
            await subject.answer_question()
            await subject.run_chain()
        for round_number in range(o.rounds):
            for subject in subjects if round_number % 2 == 0 else reversed(subjects):
                await bench.measure(subject)
            for subject in slowed:  # by what the round has shown of the others
                await bench.measure(subject)
            print(f"bench/langgraph: round {round_number + 1} of {o.rounds}", file=sys.stderr, flush=True)
    print(f"{o.rounds} rounds of {o.seconds:g} s; the clients are one Python process\n")
    print("\n".join(bench.lines(o.stores)))
    print("\nProcessor time of an operation:\n")
    print("\n".join(bench.processor_lines()))


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
