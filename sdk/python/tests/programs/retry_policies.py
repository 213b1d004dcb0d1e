"""Retry policies: some failures are worth another attempt, others are not."""

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy

out: list[Any] = []


class Parcel(TypedDict, total=False):
    address: str
    arrived: str


class DogAtTheGate(Exception):
    pass


def deliver(failures: list[Exception], seen: list[Any]) -> Any:
    """A node that fails so often, and then arrives."""

    def node(state: Parcel, runtime: Runtime) -> Parcel:
        info = runtime.execution_info
        seen.append(info.node_attempt if info else 0)
        if len(seen) <= len(failures):
            raise failures[len(seen) - 1]
        return {"arrived": f"{state['address']} in attempt {len(seen)}"}

    return node


def try_it(label: str, failures: list[Exception], policy: Any) -> None:
    seen: list[Any] = []
    builder = StateGraph(Parcel)
    builder.add_node("deliver", deliver(failures, seen), retry_policy=policy)
    builder.add_edge(START, "deliver")
    try:
        result: Any = builder.compile().invoke({"address": "Hill 7"})
    except Exception as error:
        result = [type(error).__name__, str(error)]
    out.append([label, result, seen])


def is_friendly(error: Exception) -> bool:
    return "friendly" in str(error)


FAST: dict[str, Any] = {"initial_interval": 0.001, "max_interval": 0.002, "jitter": False}
try_it("no policy", [ConnectionError("snow")], None)
try_it("left out", [ConnectionError("snow"), ConnectionError("ice")], RetryPolicy(**FAST))
try_it("too often", [ConnectionError(f"storm {n}") for n in range(5)], RetryPolicy(max_attempts=4, **FAST))
try_it("a bug", [ValueError("no such street")], RetryPolicy(**FAST))
try_it("a bug that is retried", [ValueError("no such street")], RetryPolicy(retry_on=ValueError, **FAST))
try_it("one of several", [KeyError("key"), OSError("door")], RetryPolicy(retry_on=(KeyError, OSError), **FAST))
try_it("asked", [DogAtTheGate("a friendly dog"), DogAtTheGate("a dog")], RetryPolicy(retry_on=is_friendly, **FAST))
try_it(
    "two policies",
    [DogAtTheGate("a dog"), ConnectionError("snow"), ConnectionError("ice")],
    [RetryPolicy(retry_on=DogAtTheGate, max_attempts=2, **FAST), RetryPolicy(retry_on=ConnectionError, **FAST)],
)
