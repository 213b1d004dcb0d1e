"""An agent of a shop: it finds orders on its own, and refunds one only when a person agrees.

This process is the worker: it runs the nodes of the graph. Chats, questions and answers are in the server.
"""

from __future__ import annotations

import os
from typing import Any

from fake_model import FakeModel

from graphd.prebuilt import ToolApproval, ToolNode, create_react_agent

GOODS = [("a blue mug", 18), ("a pair of socks", 9), ("a desk lamp", 64), ("a chess set", 35)]


def find_order(order: int) -> str:
    """Looks up an order by its number."""
    name, price = GOODS[order % len(GOODS)]
    return f"Order {order}: {name}, {price} EUR"


def refund_order(order: int, amount: int, reason: str) -> str:
    """Pays back an amount in EUR for an order."""
    return f"I have refunded {amount} EUR for order {order}."


REFUND = {
    "type": "object",
    "required": ["order", "amount", "reason"],
    "additionalProperties": False,
    "properties": {
        "order": {"type": "integer"},
        "amount": {"type": "integer", "minimum": 1, "maximum": 500},
        "reason": {"type": "string", "minLength": 1},
    },
}

# The server checks what people make of a call against this schema.
approval = ToolApproval({"refund_order": REFUND}, allowed_decisions=["approve", "edit", "reject"])


def build_agent(server: str, model: Any) -> Any:
    """The graph: a model and its tools, in turns."""
    tools = ToolNode([find_order, refund_order], wrap_tool_call=approval.wrap_tool_call)
    return create_react_agent(model, tools, server=server, name="shop-agent")


def main(model: Any) -> None:
    """Works until it is stopped."""
    server = os.environ.get("GRAPHD_SERVER", "localhost:7700")
    print(f"working on shop-agent for {server}", flush=True)
    build_agent(server, model).serve()


if __name__ == "__main__":
    main(FakeModel())
