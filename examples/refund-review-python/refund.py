"""A refund review whose nodes are Python functions.

This process is the worker: it runs the nodes and waits for work. Runs are
started, and people answer, from anywhere that reaches the server.
"""

from __future__ import annotations

import operator
import os
import re
import uuid
from typing import Annotated, Any, Literal, TypedDict

from graphd import END, START, Command, StateGraph, interrupt, memo

ASKS_FOR_MONEY = re.compile(r"refund|money back|chargeback|return (it|this|the|my)", re.IGNORECASE)

DECISION = {
    "type": "object",
    "required": ["decision"],
    "additionalProperties": False,
    "properties": {
        "decision": {"enum": ["approved", "approved_with_conditions", "rejected"]},
        "conditions": {"type": "string", "minLength": 1},
        "reason": {"type": "string"},
    },
    "if": {"properties": {"decision": {"const": "approved_with_conditions"}}},
    "then": {"required": ["conditions"]},
}


class Entry(TypedDict):
    """One line of the conversation."""

    node: str
    content: str


class State(TypedDict, total=False):
    """What is known of a request."""

    user_id: int
    user_request: str
    ticket: str
    human_review: dict[str, Any] | None
    final_response: str
    conversation_history: Annotated[list[Entry], operator.add]


def analyze(state: State) -> Command[Literal["human_review", "execute"]]:
    """Only requests for money need a person."""
    is_refund = ASKS_FOR_MONEY.search(state["user_request"]) is not None
    return Command(
        goto="human_review" if is_refund else "execute",
        update={"conversation_history": [Entry(node="analyze", content=f"Received: {state['user_request']}")]},
    )


def human_review(state: State) -> State:
    """Opens a ticket, once, and waits for a decision, for weeks if need be.

    With the answer the function runs again from its first line. What the memo
    recorded is not done again, so the ticket keeps its number.
    """
    ticket = memo("ticket", open_ticket)
    decision = interrupt(
        {"ticket": ticket, "user_id": state["user_id"], "user_request": state["user_request"]},
        schema=DECISION,
        reason="approval",
        message=f"{ticket}: {state['user_request']}",
    )
    return {
        "ticket": ticket,
        "human_review": decision,
        "conversation_history": [Entry(node="human_review", content=f"Decision: {decision['decision']}")],
    }


def open_ticket() -> str:
    """Stands for a call of a ticket system."""
    number = f"R-{uuid.uuid4().hex[:8]}"
    if log := os.environ.get("TICKET_LOG"):
        with open(log, "a") as file:
            file.write(number + "\n")
    return number


def execute(state: State) -> State:
    """Writes the answer to the customer."""
    response = response_to(state.get("human_review"))
    return {"final_response": response, "conversation_history": [Entry(node="execute", content=response)]}


def response_to(review: dict[str, Any] | None) -> str:
    """What the customer reads."""
    if review is None:
        return "Thank you for your message. We are looking into it."
    if review["decision"] == "approved":
        return "Your refund has been approved. The money is on its way."
    if review["decision"] == "approved_with_conditions":
        return f"Your refund has been approved under this condition: {review['conditions']}"
    return f"We are sorry, your refund was declined. {review.get('reason', '')}".rstrip()


def builder() -> StateGraph:
    """The graph; analyze decides where to go."""
    graph = StateGraph(State)
    graph.add_node("analyze", analyze)
    graph.add_node("human_review", human_review)
    graph.add_node("execute", execute)
    graph.add_edge(START, "analyze")
    graph.add_edge("human_review", "execute")
    graph.add_edge("execute", END)
    return graph


def main() -> None:
    """Works until it is stopped."""
    server = os.environ.get("GRAPHD_SERVER", "localhost:7700")
    graph = builder().compile(server=server, name="refund-review-python")
    print(f"working on {graph.name} for {server}", flush=True)
    graph.serve()


if __name__ == "__main__":
    main()
