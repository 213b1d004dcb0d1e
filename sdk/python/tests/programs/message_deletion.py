"""Short memory: old messages are deleted, trimmed before the model sees them, or told in a summary."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, trim_messages
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

out: list[Any] = []


class Chat(MessagesState):
    summary: str


def answer(state: Chat) -> dict[str, Any]:
    seen = trim_messages(state["messages"], max_tokens=3, token_counter=len, strategy="last", start_on="human")
    known = f" knowing {state['summary']}" if state.get("summary") else ""
    number = state["messages"][-1].id.removeprefix("h")
    return {"messages": [AIMessage(f"saw {[m.id for m in seen]}{known}", id=f"a{number}")]}


def delete_old(state: Chat) -> dict[str, Any]:
    return {"messages": [RemoveMessage(id=m.id) for m in state["messages"][:-4]]}


def summarise(state: Chat) -> dict[str, Any]:
    if len(state["messages"]) <= 4:
        return {}
    told = ",".join(m.content for m in state["messages"][:-2] if m.type == "human")
    summary = f"{state.get('summary', '')}[{told}]"
    return {"summary": summary, "messages": [RemoveMessage(id=m.id) for m in state["messages"][:-2]]}


def start_over(state: Chat) -> dict[str, Any]:
    if state["messages"][-2].content != "forget it":
        return {}
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), SystemMessage("a new page", id="s")]}


def build(tidy: Any) -> Any:
    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_node("tidy", tidy)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "tidy")
    builder.add_edge("tidy", END)
    return builder.compile(checkpointer=InMemorySaver())


def show(state: dict[str, Any]) -> Any:
    return [[m.id, m.content] for m in state["messages"]], state.get("summary")


for tidy in (delete_old, summarise, start_over):
    graph = build(tidy)
    config: Any = {"configurable": {"thread_id": tidy.__name__}}
    for number, text in enumerate(["hello", "a joke", "another", "forget it", "hello again"], 1):
        out.append(show(graph.invoke({"messages": [HumanMessage(text, id=f"h{number}")]}, config)))

# From outside: a message goes, and another is corrected.
graph.update_state(config, {"messages": [RemoveMessage(id="s"), AIMessage("corrected", id="a5")]})
out.append(show(graph.get_state(config).values))
