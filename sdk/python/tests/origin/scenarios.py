"""The shortest programs for each thing that questions, commands, sends and breakpoints do."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

out: list[Any] = []


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def build(nodes: dict[str, Any], edges: list[tuple[str, str]], **options: Any) -> Any:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node, **({"destinations": ("left", "right")} if name == "choose" else {}))
    for edge in edges:
        builder.add_edge(*edge)
    return builder.compile(checkpointer=InMemorySaver(), **options)


def note(text: str) -> Any:
    return lambda state: {"log": [text]}


def show(chunk: dict[str, Any]) -> dict[str, Any]:
    return {k: [getattr(q, "value", q) for q in v] if k == "__interrupt__" else v for k, v in chunk.items()}


def stream(graph: Any, given: Any, thread: str) -> None:
    chunks = [show(chunk) for chunk in graph.stream(given, {"configurable": {"thread_id": thread}})]
    out.append(sorted(chunks, key=str) if thread == "sends" else chunks)  # sends end in any order


def ask_once(state: State) -> State:
    return {"log": [interrupt({"question": "go on?"})]}


def ask_twice(state: State) -> State:
    return {"log": [interrupt("first?"), interrupt("second?")]}


out.append("a question in the stream, and its answer")
graph = build({"ask": ask_once}, [(START, "ask"), ("ask", END)])
stream(graph, {"log": []}, "one")
stream(graph, Command(resume="yes"), "one")

out.append("two questions need two answers")
graph = build({"ask": ask_twice}, [(START, "ask"), ("ask", END)])
stream(graph, {"log": []}, "two")
stream(graph, Command(resume="a"), "two")
stream(graph, Command(resume="b"), "two")

out.append("a command goes where it says")


def choose(state: State) -> Command[str]:
    return Command(goto="right" if "right" in state["log"] else "left", update={"log": ["chosen"]})


graph = build(
    {"choose": choose, "left": note("left"), "right": note("right")}, [(START, "choose"), ("left", END), ("right", END)]
)
stream(graph, {"log": ["right"]}, "right")
stream(graph, {"log": []}, "left")

out.append("a command to the parent")
inner = StateGraph(State)
inner.add_node("leave", lambda state: Command(goto="after", update={"log": ["left the child"]}, graph=Command.PARENT))
inner.add_edge(START, "leave")
builder = StateGraph(State)
builder.add_node("child", inner.compile(), destinations=("after",))
builder.add_node("after", note("after"))
builder.add_edge(START, "child")
builder.add_edge("after", END)
graph = builder.compile(checkpointer=InMemorySaver())
stream(graph, {"log": []}, "parent")

out.append("a list of sends")


def spread(state: State) -> list[Send]:
    return [Send("work", {"log": [str(n)]}) for n in range(3)]


def work(state: State) -> State:
    return {"log": [f"worked on {state['log'][0]}"]}


builder = StateGraph(State)
builder.add_node("work", work)
builder.add_node("join", note("joined"))
builder.add_conditional_edges(START, spread, ["work"])
builder.add_edge("work", "join")
builder.add_edge("join", END)
stream(builder.compile(checkpointer=InMemorySaver()), {"log": []}, "sends")

out.append("breakpoints at an approval node")
for option in ("interrupt_before", "interrupt_after"):
    nodes = {"prepare": note("prepared"), "approve": note("approved"), "finish": note("finished")}
    edges = [(START, "prepare"), ("prepare", "approve"), ("approve", "finish"), ("finish", END)]
    graph = build(nodes, edges, **{option: ["approve"]})
    stream(graph, {"log": []}, option)
    out.append(list(graph.get_state({"configurable": {"thread_id": option}}).next))
    stream(graph, None, option)
