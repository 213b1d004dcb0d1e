"""Plan and execute: a plan is carried out step by step, and made again when a step finds something new."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Work(TypedDict, total=False):
    goal: str
    plan: list[str]
    past: Annotated[list[tuple[str, str]], operator.add]
    response: str


planner = GenericFakeChatModel(messages=iter([AIMessage("dig; plant; water")]))
REPLIES = ["PLAN fetch a hose; plant; water", "PLAN plant; water", "PLAN water", "RESPONSE the garden is made"]
replanner = GenericFakeChatModel(messages=iter([AIMessage(reply) for reply in REPLIES]))
FINDINGS = {"dig": "the ground is dry", "fetch a hose": "a long hose", "plant": "three rows", "water": "all is wet"}


def make_plan(state: Work) -> Work:
    return {"plan": planner.invoke(f"plan: {state['goal']}").content.split("; ")}


async def execute(state: Work) -> Work:
    step = state["plan"][0]
    if step == "plant":
        return {"past": [(step, interrupt({"which plants for": state["goal"]}))]}
    return {"past": [(step, FINDINGS[step])]}


async def replan(state: Work) -> Work:
    said = (await replanner.ainvoke(f"{state['plan']} after {state['past']}")).content
    kind, _, text = said.partition(" ")
    return {"response": text} if kind == "RESPONSE" else {"plan": text.split("; ")}


def should_end(state: Work) -> str:
    return END if state.get("response") else "execute"


builder = StateGraph(Work)
builder.add_node(make_plan)
builder.add_node(execute)
builder.add_node(replan)
builder.add_edge(START, "make_plan")
builder.add_edge("make_plan", "execute")
builder.add_edge("execute", "replan")
builder.add_conditional_edges("replan", should_end, ["execute", END])
graph = builder.compile(checkpointer=InMemorySaver())


async def main() -> None:
    config: Any = {"configurable": {"thread_id": "garden"}, "recursion_limit": 30}
    for given in ({"goal": "a garden"}, Command(resume="beans and peas")):
        async for chunk in graph.astream(given, config):
            out.append({k: [q.value for q in v] if k == "__interrupt__" else v for k, v in chunk.items()})
        snapshot = await graph.aget_state(config)
        out.append([list(snapshot.next), snapshot.values])


asyncio.run(main())
