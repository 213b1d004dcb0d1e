"""Quickstart: a chatbot that calls tools until it can answer."""

from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

out: list[Any] = []


@tool
def find_tide(harbour: str) -> str:
    """Finds the time of the next high tide."""
    return {"brest": "04:10", "cork": "06:35"}[harbour.lower()]


@tool
def convert_to_minutes(clock: str) -> int:
    """Converts a time of the day to minutes after midnight."""
    hours, minutes = clock.split(":")
    return int(hours) * 60 + int(minutes)


def call(name: str, **args: str) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"{name}-{'-'.join(args.values())}"}


model = GenericFakeChatModel(
    messages=iter(
        [
            AIMessage("", tool_calls=[call("find_tide", harbour="Brest"), call("find_tide", harbour="Cork")]),
            AIMessage("", tool_calls=[call("convert_to_minutes", clock="06:35")]),
            AIMessage("Cork has its tide 145 minutes later."),
            AIMessage("", tool_calls=[call("find_tide", harbour="Atlantis")]),
            AIMessage("I know no such harbour."),
        ]
    )
)


def chat(state: MessagesState) -> dict[str, Any]:
    return {"messages": [model.invoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("chat", chat)
builder.add_node("tools", ToolNode([find_tide, convert_to_minutes], handle_tool_errors="the tool failed"))
builder.add_edge(START, "chat")
builder.add_conditional_edges("chat", tools_condition)
builder.add_edge("tools", "chat")
graph = builder.compile(checkpointer=InMemorySaver())

config: Any = {"configurable": {"thread_id": "sailor"}}
for question in ("How far apart are the tides of Brest and Cork?", "And Atlantis?"):
    for chunk in graph.stream({"messages": [("user", question)]}, config, stream_mode="values"):
        last = chunk["messages"][-1]
        out.append([last.type, last.content, [c["name"] for c in getattr(last, "tool_calls", [])]])
messages = graph.get_state(config).values["messages"]
out.append([[m.type, m.content, m.name, m.status] for m in messages if m.type == "tool"])
out.append(len(messages))
