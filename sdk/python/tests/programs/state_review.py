"""Review and edit: a person reads a draft in the state, corrects it, and the work goes on with the correction."""

from typing import Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Notice(TypedDict, total=False):
    topic: str
    draft: str
    editor: str
    rounds: int
    printed: str


def write(state: Notice) -> Notice:
    rounds = state.get("rounds", 0) + 1
    return {"draft": f"{state['topic']}, version {rounds}", "rounds": rounds}


def review(state: Notice) -> Command[Literal["write", "print_notice", "__end__"]]:
    answer = interrupt({"task": "Correct the notice", "draft": state["draft"], "rounds": state["rounds"]})
    if answer["verdict"] == "again":
        return Command(goto="write", update={"topic": answer.get("topic", state["topic"])})
    if answer["verdict"] == "drop":
        return Command(goto=END, update={"editor": answer["editor"]})
    return Command(goto="print_notice", update={"draft": answer["draft"], "editor": answer["editor"]})


def print_notice(state: Notice) -> Notice:
    return {"printed": f"{state['draft']} ({state['editor']})"}


builder = StateGraph(Notice)
builder.add_node(write)
builder.add_node(review)
builder.add_node(print_notice)
builder.add_edge(START, "write")
builder.add_edge("write", "review")
builder.add_edge("print_notice", END)
graph = builder.compile(checkpointer=InMemorySaver())

CASES: dict[str, list[dict[str, Any]]] = {
    "kept": [{"verdict": "keep", "draft": "Closed on Monday, as it was", "editor": "Mia"}],
    "dropped": [{"verdict": "drop", "editor": "Nat"}],
    "rewritten": [
        {"verdict": "again"},
        {"verdict": "again", "topic": "Closed on Tuesday"},
        {"verdict": "keep", "draft": "Open all week", "editor": "Oda"},
    ],
}
for thread, answers in CASES.items():
    config: Any = {"configurable": {"thread_id": thread}}
    for given in ({"topic": "Closed on Monday"}, *(Command(resume=answer) for answer in answers)):
        for chunk in graph.stream(given, config):
            out.append({k: [q.value for q in v] if k == "__interrupt__" else v for k, v in chunk.items()})
    out.append(graph.get_state(config).values)

# A correction from outside, after the notice was printed, is printed again.
config = {"configurable": {"thread_id": "kept"}}
graph.update_state(config, {"draft": "Closed for ever"}, as_node="review")
out.append(list(graph.get_state(config).next))
graph.update_state(config, {"draft": "Closed for ever", "editor": "Pia"}, as_node="write")
state = graph.invoke(None, config)
out.append([q.value for q in state["__interrupt__"]])
final = graph.invoke(Command(resume={"verdict": "keep", "draft": "Closed for a while", "editor": "Pia"}), config)
out.append(final)
out.append([[s.metadata["source"], list(s.next)] for s in graph.get_state_history(config)])
