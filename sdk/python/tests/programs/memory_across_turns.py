"""Memory: a conversation goes on where it was, each customer has one, and without a saver there is none."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

out: list[Any] = []


class Guests(MessagesState):
    name: str
    visits: int


def greet(state: Guests) -> dict[str, Any]:
    said = state["messages"][-1].content
    name = said.removeprefix("I am ") if said.startswith("I am ") else state.get("name", "stranger")
    visits = state.get("visits", 0) + 1
    text = f"Welcome, {name}, for the {visits}. time, after {len(state['messages']) - 1} messages"
    return {"messages": [AIMessage(text)], "name": name, "visits": visits}


builder = StateGraph(Guests)
builder.add_node(greet)
builder.add_edge(START, "greet")
builder.add_edge("greet", END)
saver = InMemorySaver()
graph = builder.compile(checkpointer=saver)
forgetful = builder.compile()


def say(thread: str, text: str) -> None:
    config: Any = {"configurable": {"thread_id": thread}}
    state = graph.invoke({"messages": [HumanMessage(text)]}, config)
    out.append([thread, state["messages"][-1].content, len(state["messages"])])


for thread, text in [
    ("room 1", "I am Ida"),
    ("room 2", "I am Joao"),
    ("room 1", "Is there breakfast?"),
    ("room 2", "Where is the key?"),
    ("room 1", "I am Ida's sister"),
]:
    say(thread, text)

for text in ("I am Kim", "Do you know me?"):
    out.append(forgetful.invoke({"messages": [("user", text)]})["messages"][-1].content)

for thread in ("room 1", "room 2", "room 3"):
    snapshot = graph.get_state({"configurable": {"thread_id": thread}})
    out.append([snapshot.values.get("name"), snapshot.values.get("visits"), list(snapshot.next)])
    out.append([[m.type, m.content] for m in snapshot.values.get("messages", [])])

# One guest leaves, and is forgotten.
saver.delete_thread("room 1")
say("room 1", "Do you know me?")
say("room 2", "Do you know me?")
