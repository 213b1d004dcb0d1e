"""A program of a user that declares its types: an order desk that asks people.

mypy --strict and pyright check it, and test_typing.py runs it. It uses the SDK
as a user would, without casts and without comments for the checkers.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import graphd
from graphd import memo, scope
from graphd.cache.memory import InMemoryCache
from graphd.checkpoint.memory import InMemorySaver
from graphd.config import get_config, get_stream_writer
from graphd.constants import END, START
from graphd.errors import GraphdError, GraphRecursionError, InvalidUpdateError
from graphd.graph import MessagesState, StateGraph, add_messages
from graphd.graph.state import CompiledStateGraph
from graphd.managed import RemainingSteps
from graphd.messages import AIMessage, AnyMessage, HumanMessage
from graphd.prebuilt import ToolNode, add_human_in_the_loop, tools_condition
from graphd.pregel import Pregel
from graphd.runtime import Runtime
from graphd.types import CachePolicy, Command, Interrupt, RetryPolicy, Send, StateSnapshot, StateUpdate, interrupt


@dataclass
class Desk:
    """The context of a run: who works at the desk."""

    clerk: str
    limit: int = 100


class Item(TypedDict):
    """One line of an order."""

    name: str
    price: int


class Order(TypedDict, total=False):
    """The state: what is known of an order."""

    items: list[Item]
    checked: Annotated[list[str], operator.add]
    total: int
    receipt: str
    verdict: Literal["pay", "refuse"]
    steps_left: RemainingSteps


def price(state: Order, runtime: Runtime[Desk]) -> Order:
    """Adds up, and says so on the custom stream."""
    total = sum(item["price"] for item in state.get("items", []))
    get_stream_writer()({"clerk": runtime.context.clerk, "total": total})
    return {"total": total}


def spread(state: Order) -> list[Send]:
    """Checks each item by itself."""
    return [Send("check", item) for item in state.get("items", [])]


async def check(item: Item) -> Order:
    """One of the parallel checks."""
    await asyncio.sleep(0)
    return {"checked": [item["name"]]}


def review(state: Order, runtime: Runtime[Desk]) -> Command[Literal["charge", "__end__"]]:
    """Asks a person about large orders."""
    total = state.get("total", 0)
    if total <= runtime.context.limit:
        return Command(update={"verdict": "pay"}, goto="charge")
    answer: str = interrupt(
        {"total": total}, schema={"enum": ["pay", "refuse"]}, reason="approval", message=f"Pay {total}?"
    )
    if answer == "refuse":
        return Command(update={"verdict": "refuse"}, goto=END)
    return Command(update={"verdict": "pay"}, goto="charge")


def charge(state: Order) -> Order:
    """Has its effect once."""
    with scope("card"):
        receipt: str = memo("charge", lambda: f"{get_config()['configurable']['thread_id']}-{state.get('total', 0)}")
    return {"receipt": receipt}


def build_desk() -> StateGraph[Order, Desk]:
    """The graph of the desk."""
    builder = StateGraph[Order, Desk](Order, context_schema=Desk)
    builder.add_node(price, cache_policy=CachePolicy(ttl=60))
    builder.add_node("check", check, retry_policy=RetryPolicy(max_attempts=2, retry_on=ConnectionError))
    builder.add_node(review)
    builder.add_node(charge)
    builder.add_edge(START, "price")
    builder.add_conditional_edges("price", spread, ["check"])
    builder.add_edge("check", "review")
    builder.add_edge("charge", END)
    return builder


def ask_price(name: str) -> int:
    """The price of an item."""
    return len(name)


class Chat(MessagesState):
    """A conversation with one more key."""

    summary: str


def answer_customer(state: Chat) -> dict[str, list[AnyMessage]]:
    """Stands for a model: calls a tool, then says what it has said."""
    last = state["messages"][-1]
    if last.type == "tool":
        return {"messages": [AIMessage(f"It costs {last.content}.", id="answer")]}
    call = {"name": "ask_price", "args": {"name": str(last.content)}, "id": "call-1", "type": "tool_call"}
    return {"messages": [AIMessage("", id="call", tool_calls=[call])]}


def build_chat() -> StateGraph:
    """A graph with tools that a person reviews."""
    builder = StateGraph(Chat)
    builder.add_node("model", answer_customer)
    builder.add_node("tools", ToolNode([add_human_in_the_loop(ask_price)]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


def first_question(result: dict[str, Any]) -> Interrupt:
    """The question under which a run stopped."""
    questions: Sequence[Interrupt] = result["__interrupt__"]
    return questions[0]


def play_order(desk: CompiledStateGraph[Order, Desk, Order, Order], thread: str) -> list[str]:
    """Runs an order to its question, answers it, and looks back."""
    config = {"configurable": {"thread_id": thread}}
    order: Order = {"items": [{"name": "lamp", "price": 90}, {"name": "chair", "price": 60}]}
    told: list[str] = []
    for mode, event in desk.stream(order, config, context=Desk("ann"), stream_mode=["updates", "custom"]):
        told.append(f"{mode}: {sorted(event)}")
    waiting: StateSnapshot = desk.get_state(config)
    question = waiting.interrupts[0]
    told.append(f"{waiting.next} {question.value['total']} {len(question.id) > 0}")
    ended: dict[str, Any] = desk.invoke(Command(resume={question.id: "pay"}), config, context=Desk("ann"))
    told.append(ended["receipt"])
    desk.update_state(config, {"checked": ["by hand"]}, as_node="check")
    desk.bulk_update_state(config, [[StateUpdate({"total": 1}, "price")]])
    told.extend(
        str(snapshot.metadata and snapshot.metadata["source"]) for snapshot in desk.get_state_history(config, limit=2)
    )
    return told


async def play_chat(chat: CompiledStateGraph, thread: str) -> str:
    """The same without blocking."""
    config = {"configurable": {"thread_id": thread}}
    async for _ in chat.astream({"messages": [HumanMessage("lamp", id="q")]}, config, stream_mode="values"):
        pass
    state = await chat.aget_state(config)
    answers = {question.id: {"type": "accept"} for question in state.interrupts}
    result: dict[str, Any] = await chat.ainvoke(Command(resume=answers), config)
    messages: list[AnyMessage] = add_messages(result["messages"], [])
    return str(messages[-1].content)


def explain_mistake(desk: Pregel, thread: str) -> str:
    """Errors have types, and those of the server a reason."""
    try:
        desk.update_state({"configurable": {"thread_id": thread}}, {"total": 1}, as_node="nowhere")
    except (InvalidUpdateError, GraphRecursionError) as error:
        return type(error).__name__
    except GraphdError as error:
        return error.reason or "unknown"
    return "none"


def main() -> dict[str, list[str]]:
    """Plays everything on a server of its own."""
    security = graphd.Security(token=None)
    with graphd.dev(store="memory") as server:
        desk = build_desk().compile(cache=InMemoryCache(), server=server.address, security=security, name="desk")
        chat = build_chat().compile(InMemorySaver(server=server.address), name="chat")
        told = play_order(desk, "order-1")
        said = asyncio.run(play_chat(chat, "chat-1"))
        drawn = desk.get_graph().draw_mermaid()
        return {
            "order": told,
            "chat": [said],
            "mistake": [explain_mistake(desk, "order-1")],
            "drawn": drawn.splitlines()[:1],
        }


if __name__ == "__main__":
    print(main())
