"""Filtered tokens: models have tags and names, some stay silent, and tools have models of their own."""

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.constants import TAG_NOSTREAM
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import push_message
from langgraph.prebuilt import ToolNode

out: list[Any] = []


def make_model(*texts: str, **options: Any) -> Any:
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]), **options)


loud = make_model("a loud answer", "louder still", tags=["loud"])
silent = make_model("a silent answer", "more silence", tags=[TAG_NOSTREAM])
inner = make_model("from a tool", "from the tool again", tags=["tool"])


@tool
async def consult(topic: str) -> str:
    """Consults another model."""
    return str((await inner.ainvoke(topic)).content)


async def think(state: MessagesState) -> dict[str, Any]:
    thought = await silent.ainvoke(state["messages"])
    return {"messages": [AIMessage(thought.content, id=f"thought-{len(state['messages'])}")]}


async def speak(state: MessagesState) -> dict[str, Any]:
    said = await loud.ainvoke(state["messages"])
    push_message(AIMessage("by the way", id=f"aside-{len(state['messages'])}"))
    call = {"name": "consult", "args": {"topic": "owls"}, "id": "call-1"}
    return {"messages": [said, AIMessage("", tool_calls=[call], id=f"calls-{len(state['messages'])}")]}


builder = StateGraph(MessagesState)
builder.add_node(think)
builder.add_node(speak, metadata={"speaker": "owl"})
builder.add_node("tools", ToolNode([consult]))
builder.add_edge(START, "think")
builder.add_edge("think", "speak")
builder.add_edge("speak", "tools")
graph = builder.compile()


async def main() -> None:
    pieces: list[Any] = []
    async for mode, item in graph.astream(
        {"messages": [("user", "hello")]}, {"metadata": {"caller": "test"}}, stream_mode=["messages", "updates"]
    ):
        if mode == "updates":
            pieces.append(sorted(item))
            continue
        message, metadata = item
        tags = [tag for tag in metadata.get("tags") or [] if not tag.startswith("seq:")]
        pieces.append([message.content, metadata["langgraph_node"], tags, metadata.get("caller")])
        pieces[-1].append(metadata.get("speaker"))
    out.extend(pieces)
    state = await graph.ainvoke({"messages": [("user", "again")]})
    out.append([[m.type, m.content] for m in state["messages"]])


asyncio.run(main())
