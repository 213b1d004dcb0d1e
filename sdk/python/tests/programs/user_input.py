"""Waiting for a user: a chat agent asks the person when it does not know enough."""

from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


def call(name: str, number: int, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{number}"}], id=f"ai-{number}")


def agent(state: MessagesState) -> dict[str, Any]:
    answers = [m for m in state["messages"] if m.type == "tool"]
    known = {m.name: m.content for m in answers}
    number = len(state["messages"])
    if "ask_human" not in known:
        return {"messages": [call("ask_human", number, question="Where are you?")]}
    if known["ask_human"] == "nowhere":
        return {"messages": [AIMessage("Then I can't help.", id="end")]}
    if "find_weather" not in known:
        return {"messages": [call("find_weather", number, town=known["ask_human"])]}
    return {"messages": [AIMessage(f"In {known['ask_human']}: {known['find_weather']}", id="end")]}


def route(state: MessagesState) -> str:
    last = state["messages"][-1]
    if not last.tool_calls:
        return END
    return "ask_human" if last.tool_calls[0]["name"] == "ask_human" else "action"


def ask_human(state: MessagesState) -> dict[str, Any]:
    asked = state["messages"][-1].tool_calls[0]
    town = interrupt(asked["args"]["question"])
    return {"messages": [ToolMessage(town, name="ask_human", tool_call_id=asked["id"])]}


def action(state: MessagesState) -> dict[str, Any]:
    asked = state["messages"][-1].tool_calls[0]
    return {"messages": [ToolMessage("fog and rain", name="find_weather", tool_call_id=asked["id"])]}


builder = StateGraph(MessagesState)
builder.add_node(agent)
builder.add_node(ask_human)
builder.add_node(action)
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", route, ["ask_human", "action", END])
builder.add_edge("ask_human", "agent")
builder.add_edge("action", "agent")
graph = builder.compile(checkpointer=InMemorySaver())

for thread, town in (("walker", "Bergen"), ("dreamer", "nowhere"), ("shy", None)):
    config: Any = {"configurable": {"thread_id": thread}}
    given: Any = {"messages": [("user", "Do I need a coat?")]}
    while True:
        for state in graph.stream(given, config, stream_mode="values"):
            asked = [q.value for q in state.get("__interrupt__", [])]
            out.append([len(state["messages"]), state["messages"][-1].content, asked])
        snapshot = graph.get_state(config)
        out.append([list(snapshot.next), [[t.name, [q.value for q in t.interrupts]] for t in snapshot.tasks]])
        if not snapshot.next or town is None:
            break
        given = Command(resume=town)
