"""Customer service: a request of high risk waits for a person, who may approve it with conditions."""

import operator
from typing import Annotated, Any, Literal, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Case(TypedDict, total=False):
    user: str
    request: str
    type: str
    analysis: dict[str, Any]
    review: dict[str, Any]
    response: str
    history: Annotated[list[str], operator.add]


def receive(case: Case) -> Case:
    kind = "refund" if "refund" in case["request"] else "question"
    return {"type": kind, "history": [f"received a {kind}"]}


def analyse(case: Case) -> Case:
    amount = next((int(word.strip("$")) for word in case["request"].split() if word.startswith("$")), 0)
    risky = case["type"] == "refund" and amount > 100
    analysis = {"amount": amount, "urgent": "now" in case["request"], "risk": "high" if risky else "low"}
    return {"analysis": analysis, "history": [f"risk is {analysis['risk']}"]}


def review(case: Case) -> Case:
    if case["analysis"]["risk"] == "low":
        return {"review": {"decision": "approve", "by": "rule"}, "history": ["passed by rule"]}
    answer = interrupt(
        {
            "kind": "review",
            "user": case["user"],
            "request": case["request"],
            "analysis": case["analysis"],
            "options": ["approve", "approve_with_conditions", "reject"],
        }
    )
    return {"review": answer, "history": [f"a person said {answer['decision']}"]}


def respond(case: Case) -> Case:
    match case["review"]:
        case {"decision": "approve_with_conditions", "fee": fee}:
            text = f"{case['user']}: granted, less a fee of ${fee}"
        case {"decision": "approve"}:
            text = f"{case['user']}: granted"
        case _:
            text = f"{case['user']}: we can't do this"
    return {"response": text, "history": ["answered"]}


builder = StateGraph(Case)
for name, node in [("receive", receive), ("analyse", analyse), ("review", review), ("respond", respond)]:
    builder.add_node(name, node)
builder.add_edge(START, "receive")
builder.add_edge("receive", "analyse")
builder.add_edge("analyse", "review")
builder.add_edge("review", "respond")
builder.add_edge("respond", END)
graph = builder.compile(checkpointer=InMemorySaver())

Decision = Literal["approve", "approve_with_conditions", "reject"]


def serve(thread: str, request: str, answer: dict[str, Any]) -> None:
    config = {"configurable": {"thread_id": thread}}
    for chunk in graph.stream({"user": thread, "request": request, "history": []}, config):
        out.append({k: [q.value for q in v] if k == "__interrupt__" else v for k, v in chunk.items()})
    snapshot = graph.get_state(config)
    out.append({"next": list(snapshot.next), "history": snapshot.values["history"]})
    if snapshot.next:
        for chunk in graph.stream(Command(resume=answer), config):
            out.append(chunk)
    final = graph.get_state(config)
    out.append({"response": final.values["response"], "history": final.values["history"], "next": list(final.next)})


serve("ann", "a refund of $250 now", {"decision": "approve_with_conditions", "fee": 25})
serve("bob", "a refund of $900", {"decision": "reject"})
serve("cem", "a refund of $20", {})
serve("dana", "where is my parcel?", {})
