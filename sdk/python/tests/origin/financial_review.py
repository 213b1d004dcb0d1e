"""A financial adviser computes much before it asks, and only where the risk is high."""

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

out: list[Any] = []


class Portfolio(TypedDict, total=False):
    client: str
    appetite: int
    market: dict[str, int]
    risk: int
    candidates: list[str]
    compliance: str
    portfolio: list[str]
    approval: dict[str, Any]


def advise(state: Portfolio) -> Portfolio:
    market = {"bonds": 2, "shares": 7, "coins": 30}
    candidates = [name for name, swing in market.items() if swing <= state["appetite"]]
    risk = max((market[name] for name in candidates), default=0)
    compliance = "clear" if risk < 20 else "needs a signature"
    found: Portfolio = {"market": market, "candidates": candidates, "risk": risk, "compliance": compliance}
    out.append(["computed", state["client"], risk])
    if risk <= 5:
        return {**found, "portfolio": candidates, "approval": {"by": "rule"}}
    answer = interrupt({"client": state["client"], **found})
    kept = [name for name in candidates if name not in answer.get("without", [])]
    return {**found, "portfolio": kept, "approval": {"by": answer["adviser"], "note": answer.get("note", "")}}


builder = StateGraph(Portfolio)
builder.add_node("advise", advise)
builder.add_edge(START, "advise")
builder.add_edge("advise", END)
graph = builder.compile(checkpointer=InMemorySaver())

for client, appetite, answer in [
    ("careful", 3, None),
    ("bold", 50, {"adviser": "zoe", "without": ["coins"], "note": "too young"}),
]:
    config = {"configurable": {"thread_id": client}}
    result = graph.invoke({"client": client, "appetite": appetite}, config)
    out.append([q.value for q in result.get("__interrupt__", ())])
    if answer is not None:
        result = graph.invoke(Command(resume=answer), config)
    out.append(result)
