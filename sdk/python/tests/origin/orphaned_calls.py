"""A chat agent whose tool asks a person, repaired from outside while the question is open."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

out: list[Any] = []


def agent(state: MessagesState) -> dict[str, list[AnyMessage]]:
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(id=f"end-{len(state['messages'])}", content=f"done: {last.content}")]}
    call = {"name": "ask_person", "args": {"about": last.content}, "id": "call-1"}
    return {"messages": [AIMessage(id="ai-1", content="", tool_calls=[call])]}


def tools(state: MessagesState) -> dict[str, list[AnyMessage]]:
    call = state["messages"][-1].tool_calls[0]
    answer = interrupt({"tool": call["name"], "args": call["args"]})
    return {"messages": [ToolMessage(id="tool-1", content=str(answer), tool_call_id=call["id"])]}


def route(state: MessagesState) -> str:
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", tools)
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", route, ["tools", END])
builder.add_edge("tools", "agent")
graph = builder.compile(checkpointer=InMemorySaver())


def show(messages: list[AnyMessage]) -> list[Any]:
    return [[m.type, m.id if m.type != "human" else "", m.content] for m in messages]


def trace(chunks: Any) -> None:
    for chunk in chunks:
        for name, update in chunk.items():
            if name == "__interrupt__":
                out.append([name, [q.value for q in update]])
            else:
                out.append([name, show(update["messages"]) if update else None])


def find_orphans(messages: list[AnyMessage]) -> list[str]:
    """The tool calls of the last message with some that have no answer."""
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.tool_calls:
            return [c["id"] for c in message.tool_calls if c["id"] not in answered]
    return []


def describe(config: Any) -> None:
    snapshot = graph.get_state(config)
    out.append(
        {
            "messages": show(snapshot.values["messages"]),
            "next": list(snapshot.next),
            "tasks": [[t.name, [q.value for q in t.interrupts]] for t in snapshot.tasks],
            "interrupts": [q.value for q in snapshot.interrupts],
        }
    )


for thread, as_node in (("plain", None), ("as-tools", "tools")):
    config = {"configurable": {"thread_id": thread}}
    trace(graph.stream({"messages": [HumanMessage("book a room", id="h-1")]}, config))
    describe(config)
    orphans = find_orphans(graph.get_state(config).values["messages"])
    out.append(orphans)
    repaired = [ToolMessage(id=f"made-{call}", content="nobody answered", tool_call_id=call) for call in orphans]
    graph.update_state(config, {"messages": repaired}, as_node=as_node)
    describe(config)
    trace(graph.stream(None, config))
    describe(config)
