"""Error handlers: when the attempts of a node are used up, another node makes the best of it."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy

out: list[Any] = []
FAST = RetryPolicy(initial_interval=0.001, max_attempts=2, jitter=False, retry_on=OSError)


class Call(TypedDict, total=False):
    number: str
    log: Annotated[list[str], operator.add]


attempts: list[str] = []


def dial(state: Call) -> Call:
    attempts.append(state["number"])
    match state["number"]:
        case "busy":
            raise OSError("the line is busy")
        case "wrong":
            raise ValueError("no such number")
    return {"log": [f"talked to {state['number']}"]}


def leave_message(state: Call, error: NodeError) -> Command[Any]:
    kind = type(error.error).__name__
    if kind == "ValueError":
        return Command(update={"log": [f"{error.node}: {error.error}"]}, goto=END)
    return Command(update={"log": [f"a message, after {kind}"]}, goto="hang_up")


def hang_up(state: Call) -> Call:
    return {"log": ["hung up"]}


builder = StateGraph(Call)
builder.add_node("dial", dial, retry_policy=FAST, error_handler=leave_message)
builder.add_node("hang_up", hang_up)
builder.add_edge(START, "dial")
builder.add_edge("dial", "hang_up")
builder.add_edge("hang_up", END)
graph = builder.compile(checkpointer=InMemorySaver())

for number in ("sister", "busy", "wrong"):
    config: Any = {"configurable": {"thread_id": number}}
    out.append([graph.invoke({"number": number, "log": []}, config)["log"], list(attempts)])
    attempts.clear()
    out.append([list(snapshot.next) for snapshot in graph.get_state_history(config)])

# One handler for all nodes of a graph; what it raises is the failure of the run.


def refuse(state: Call, error: NodeError) -> Call:
    raise LookupError(f"{error.node} can't be helped: {error.error}")


builder = StateGraph(Call)
builder.add_node("dial", dial)
builder.add_node("hang_up", hang_up)
builder.set_node_defaults(error_handler=refuse, retry_policy=FAST)
builder.add_edge(START, "dial")
builder.add_edge("dial", "hang_up")
graph = builder.compile(checkpointer=InMemorySaver())
for number in ("brother", "busy", "wrong"):
    try:
        out.append(graph.invoke({"number": number, "log": []}, {"configurable": {"thread_id": number}})["log"])
    except LookupError as error:
        out.append([str(error), list(attempts)])
    attempts.clear()
