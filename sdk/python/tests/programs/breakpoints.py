"""Breakpoints: a printer stops before it prints, or after, as the graph or the call says."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

out: list[Any] = []


class Print(TypedDict, total=False):
    pages: int
    log: Annotated[list[str], operator.add]


def note(text: str) -> Any:
    return lambda state: {"log": [f"{text} {state['pages']}"]}


builder = StateGraph(Print)
builder.add_sequence([("lay_out", note("laid out")), ("ink", note("inked")), ("bind", note("bound"))])
builder.add_edge(START, "lay_out")
builder.add_edge("bind", END)
graphs = {
    "none": builder.compile(checkpointer=InMemorySaver()),
    "before": builder.compile(checkpointer=InMemorySaver(), interrupt_before=["ink", "bind"]),
    "after": builder.compile(checkpointer=InMemorySaver(), interrupt_after=["lay_out", "bind"]),
    "everywhere": builder.compile(checkpointer=InMemorySaver(), interrupt_before="*"),
}


def run(label: str, given: Any, **options: Any) -> bool:
    config: Any = {"configurable": {"thread_id": label}}
    chunks = list(graphs[label.split()[0]].stream(given, config, **options))
    snapshot = graphs[label.split()[0]].get_state(config)
    out.append([label, [list(chunk.items()) for chunk in chunks], list(snapshot.next), len(snapshot.interrupts)])
    return bool(snapshot.next)


for label in graphs:
    given: Any = {"pages": 3, "log": []}
    while run(label, given):
        given = None

# A call may have breakpoints of its own.
run("none called", {"pages": 5, "log": []}, interrupt_before=["bind"])
run("none called", None, interrupt_after=["bind"])
run("none called again", {"pages": 6, "log": []}, interrupt_after=["ink"])
run("none called again", None)

# At a breakpoint a person edits the state, or does the work of a node by hand.
config: Any = {"configurable": {"thread_id": "before edited"}}
run("before edited", {"pages": 8, "log": []})
graphs["before"].update_state(config, {"pages": 7})
run("before edited", None)
graphs["before"].update_state(config, {"log": ["bound by hand"]}, as_node="bind")
run("before edited", None)
out.append(graphs["before"].get_state(config).values)

# A new input leaves the breakpoint behind.
run("after left", {"pages": 1, "log": []})
run("after left", {"pages": 2})
