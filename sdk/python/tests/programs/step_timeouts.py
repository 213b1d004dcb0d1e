"""Timeouts: what takes too long is stopped, and a policy or a handler goes on from there."""

import asyncio
from typing import Any, TypedDict

from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

out: list[Any] = []
attempts: list[str] = []


class Call(TypedDict, total=False):
    who: str
    said: str


async def listen(state: Call) -> Call:
    attempts.append(state["who"])
    if state["who"] == "nobody" or (state["who"] == "sleeper" and len(attempts) < 2):
        await asyncio.Event().wait()  # for ever
    return {"said": f"{state['who']} answered"}


def leave_note(state: Call, error: NodeError) -> Call:
    return {"said": f"a note: {type(error.error).__name__} in {error.node}"}


def build(**options: Any) -> Any:
    builder = StateGraph(Call)
    builder.add_node("listen", listen, **options)
    builder.add_edge(START, "listen")
    return builder.compile()


FAST = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2, retry_on=NodeTimeoutError)
CASES: dict[str, dict[str, Any]] = {
    "plain": {"timeout": 0.6},
    "policy": {"timeout": TimeoutPolicy(run_timeout=0.6)},
    "idle": {"timeout": TimeoutPolicy(idle_timeout=0.6)},
    "retried": {"timeout": 0.6, "retry_policy": FAST},
    "handled": {"timeout": 0.6, "error_handler": leave_note},
}


async def main() -> None:
    for name, options in CASES.items():
        graph = build(**options)
        for who in ("friend", "sleeper", "nobody"):
            attempts.clear()
            try:
                result: Any = await graph.ainvoke({"who": who})
            except NodeTimeoutError as error:
                result = [error.node, error.kind]
            out.append([name, who, result, len(attempts)])


asyncio.run(main())
