"""A runner of one async function that asks twice, called three times on one thread."""

import asyncio
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Session(TypedDict, total=False):
    sentence: str


async def introduce(session: Session) -> Session:
    out.append("step 1: who are you?")
    name = interrupt({"ask": "your name"})
    out.append(f"step 2: hello, {name}")
    age = interrupt({"ask": "your age", "of": name})
    out.append(f"step 3: {name} is {age}")
    return {"sentence": f"{name} is {age} years old"}


builder = StateGraph(Session)
builder.add_node("introduce", introduce)
builder.add_edge(START, "introduce")
builder.add_edge("introduce", END)
graph = builder.compile(checkpointer=InMemorySaver())


async def run(thread: str, answer: Any = None) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}}
    result = await graph.ainvoke({"sentence": ""} if answer is None else Command(resume=answer), config)
    if questions := result.get("__interrupt__"):
        return {"status": "interrupted", "payload": [q.value for q in questions]}
    return {"status": "completed", "value": result["sentence"]}


async def main() -> None:
    for answer in (None, "Ada", 36):
        out.append(await run("session", answer))


asyncio.run(main())
