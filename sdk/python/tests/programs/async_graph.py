"""Async: nodes that wait for each other, called and read by coroutines."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Duet(TypedDict, total=False):
    song: str
    log: Annotated[list[str], operator.add]


def build() -> Any:
    both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

    async def sing(state: Duet) -> Duet:
        if both:  # the singers begin together, or never
            await both.wait()
        return {"log": [f"sings {state['song']}"]}

    async def play(state: Duet) -> Duet:
        if both:
            await both.wait()
        return {"log": [f"plays {state['song']}"]}

    async def ask(state: Duet) -> Duet:
        return {"log": [f"the audience says {interrupt('encore?')}"]}

    async def choose(state: Duet) -> str:
        await asyncio.sleep(0)
        return "bow" if "no" in state["log"][-1] else "again"

    def bow(state: Duet) -> Duet:
        return {"log": ["they bow"]}

    builder = StateGraph(Duet)
    builder.add_node(sing)
    builder.add_node(play)
    builder.add_node(ask)
    builder.add_node(bow)
    builder.add_node("again", lambda state: {"song": f"{state['song']} again"})
    builder.add_edge(START, "sing")
    builder.add_edge(START, "play")
    builder.add_edge(["sing", "play"], "ask")
    builder.add_conditional_edges("ask", choose, ["bow", "again"])
    builder.add_edge("again", END)
    builder.add_edge("bow", END)
    return builder.compile(checkpointer=InMemorySaver())


async def perform(graph: Any, song: str, answer: str) -> Any:
    config: Any = {"configurable": {"thread_id": song}}
    asked = await graph.ainvoke({"song": song, "log": []}, config)
    ended = await graph.ainvoke(Command(resume=answer), config)
    return [[q.value for q in asked["__interrupt__"]], ended]


async def main() -> None:
    graph = build()
    out.append(await perform(graph, "a waltz", "no"))
    for song in ("a march", "a hymn"):
        out.append(await perform(graph, song, "yes"))
    config: Any = {"configurable": {"thread_id": "a tango"}}
    chunks = [chunk async for chunk in graph.astream({"song": "a tango", "log": []}, config)]
    out.append(sorted(name for chunk in chunks for name in chunk))
    snapshot = await graph.aget_state(config)
    out.append([list(snapshot.next), [q.value for q in snapshot.interrupts]])
    out.append(await graph.ainvoke(Command(resume="no"), config))
    later = await graph.aupdate_state(config, {"log": ["the audience says yes, after all"]}, as_node="ask")
    out.append(list((await graph.aget_state(later)).next))
    out.append([[s.values.get("song"), list(s.next)] async for s in graph.aget_state_history(config)])


asyncio.run(main())
