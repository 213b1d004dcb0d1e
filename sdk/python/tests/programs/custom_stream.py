"""Custom data: nodes and tools tell about their work while they are at it."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import StreamWriter

out: list[Any] = []


class Import(TypedDict, total=False):
    rows: list[str]
    done: Annotated[int, operator.add]


def load(state: Import) -> Import:
    writer = get_stream_writer()
    for number, row in enumerate(state["rows"], 1):
        writer({"row": row, "of": [number, len(state["rows"])]})
    return {"done": len(state["rows"])}


def index(state: Import, writer: StreamWriter) -> Import:
    writer("an index, as text")
    writer([state["done"], None, {"nested": True}])
    return {"done": 1}


builder = StateGraph(Import)
builder.add_sequence([load, index])
builder.add_edge(START, "load")
graph = builder.compile()

rows = ["ash", "elm", "oak"]
for mode in ("custom", "updates", ["custom", "updates"], ["values", "custom"]):
    out.append([mode, list(graph.stream({"rows": rows}, stream_mode=mode))])
out.append(graph.invoke({"rows": rows}))  # nobody reads what is told

# A subgraph tells to the stream of its parent.
outer = StateGraph(Import)
outer.add_node("import", graph)
outer.add_edge(START, "import")
whole = outer.compile()
for subgraphs in (False, True):
    for item in whole.stream({"rows": ["fir"]}, stream_mode="custom", subgraphs=subgraphs):
        out.append([[level.split(":")[0] for level in item[0]], item[1]] if subgraphs else item)


@tool
def plant(tree: str) -> str:
    """Plants a tree."""
    get_stream_writer()({"planting": tree})
    return f"planted {tree}"


chat = StateGraph(MessagesState)
chat.add_node("tools", ToolNode([plant]))
chat.add_edge(START, "tools")
asked = AIMessage("", tool_calls=[{"name": "plant", "args": {"tree": "yew"}, "id": "call-1"}])


async def read_tools() -> None:
    async for mode, item in chat.compile().astream({"messages": [asked]}, stream_mode=["custom", "updates"]):
        out.append([mode, item if mode == "custom" else [m.content for m in item["tools"]["messages"]]])


asyncio.run(read_tools())
