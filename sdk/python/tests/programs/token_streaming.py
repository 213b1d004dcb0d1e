"""Tokens: what a chat model says comes piece by piece, with the node and the graph that it is from."""

import asyncio
from typing import Any, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

out: list[Any] = []


def make_model(*texts: str, **options: Any) -> Any:
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]), **options)


class Poem(TypedDict, total=False):
    subject: str
    title: str
    verse: str


poet = make_model("The owl in rain", "It waits for mice", tags=["verse"])
critic = make_model("Too short, says one", "Too long, says another")


def find_title(poem: Poem) -> Poem:
    return {"title": poet.invoke([HumanMessage(poem["subject"])]).content}


async def write(poem: Poem) -> Poem:
    return {"verse": (await poet.ainvoke(f"a verse for {poem['title']}")).content}


builder = StateGraph(Poem)
builder.add_node("find_title", find_title)
builder.add_node("write", write)
builder.add_edge(START, "find_title")
builder.add_edge("find_title", "write")
poem_graph = builder.compile()


def collect(items: list[Any]) -> list[Any]:
    """Which node of which model said which pieces."""
    found: list[Any] = []
    for message, metadata in items:
        source = [metadata["langgraph_node"], metadata["langgraph_step"], metadata.get("tags") or []]
        if not found or found[-1][0] != source or found[-1][1] != message.id:
            found.append([source, message.id, []])
        found[-1][2].append(message.content)
    return [[source, pieces] for source, _, pieces in found]


async def read(graph: Any, given: Any, **options: Any) -> list[Any]:
    return [item async for item in graph.astream(given, **options)]


async def main() -> None:
    out.append(collect(await read(poem_graph, {"subject": "an owl"}, stream_mode="messages")))

    def review(state: MessagesState) -> dict[str, Any]:
        return {"messages": [critic.invoke(state["messages"]), AIMessage("a note that no model wrote", id="note")]}

    chat = StateGraph(MessagesState)
    chat.add_node("review", review)
    chat.add_edge(START, "review")
    reviews = chat.compile()
    out.append(collect(await read(reviews, {"messages": [("user", "The owl")]}, stream_mode="messages")))
    outer = StateGraph(MessagesState)
    outer.add_node("reviews", reviews)
    outer.add_edge(START, "reviews")
    items = await read(outer.compile(), {"messages": [("user", "It waits")]}, stream_mode="messages", subgraphs=True)
    out.append([[level.split(":")[0] for level in namespace] for namespace, _ in items[:1]])
    out.append(collect([item for _, item in items]))


asyncio.run(main())
