"""Human review of tool calls: a person lets a call pass, changes it, answers in its place or sends it back."""

from typing import Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []
watered: list[str] = []


def model(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    if last.type == "tool" and not last.content.startswith("try again"):
        return {"messages": [AIMessage(f"Report: {last.content}")]}
    litres = "3" if last.type == "tool" else "30"
    call = {"name": "water", "args": {"bed": "roses", "litres": litres}, "id": f"call-{len(state['messages'])}"}
    return {"messages": [AIMessage("", tool_calls=[call], id=f"ai-{len(state['messages'])}")]}


def review(state: MessagesState) -> Command[Literal["run_tool", "model"]]:
    message = state["messages"][-1]
    call = message.tool_calls[-1]
    match interrupt({"question": "Is this right?", "tool_call": {"name": call["name"], "args": call["args"]}}):
        case {"action": "continue"}:
            return Command(goto="run_tool")
        case {"action": "update", "data": args}:
            changed = AIMessage(message.content, tool_calls=[{**call, "args": args}], id=message.id)
            return Command(goto="run_tool", update={"messages": [changed]})
        case {"action": "feedback", "data": text}:
            told = ToolMessage(text, name=call["name"], tool_call_id=call["id"])
            return Command(goto="model", update={"messages": [told]})
        case answer:
            raise ValueError(f"no such action: {answer}")


def run_tool(state: MessagesState) -> dict[str, Any]:
    call = state["messages"][-1].tool_calls[-1]
    watered.append(f"{call['args']['bed']} {call['args']['litres']}")
    return {"messages": [ToolMessage(f"watered {watered[-1]}", name=call["name"], tool_call_id=call["id"])]}


def route(state: MessagesState) -> Literal["review", "__end__"]:
    return "review" if state["messages"][-1].tool_calls else END


builder = StateGraph(MessagesState)
builder.add_node(model)
builder.add_node(review)
builder.add_node(run_tool)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", route)
builder.add_edge("run_tool", "model")
graph = builder.compile(checkpointer=InMemorySaver())

ANSWERS: dict[str, list[dict[str, Any]]] = {
    "pass": [{"action": "continue"}],
    "change": [{"action": "update", "data": {"bed": "herbs", "litres": "1"}}],
    "back": [{"action": "feedback", "data": "try again with less"}, {"action": "continue"}],
    "answer": [{"action": "feedback", "data": "it rains"}],
}
for thread, answers in ANSWERS.items():
    config: Any = {"configurable": {"thread_id": thread}}
    for given in [{"messages": [("user", "water the roses")]}, *(Command(resume=answer) for answer in answers)]:
        state = graph.invoke(given, config)
        out.append([thread, [q.value for q in state.get("__interrupt__", [])], list(watered)])
    out.append([[m.type, m.content, [c["args"] for c in getattr(m, "tool_calls", [])]] for m in state["messages"]])
