"""A chat model that only pretends: it answers from a script, word by word, as models do."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphd.graph import push_message
from graphd.messages import AIMessage, AIMessageChunk

Calls = list[dict[str, Any]]


class FakeModel:
    """Looks up the orders that a customer names, offers to refund them, and sums up."""

    def __init__(self, pause: Callable[[], None] = lambda: time.sleep(0.05)) -> None:
        self._pause = pause

    def bind_tools(self, tools: Sequence[Any]) -> FakeModel:
        """A real model learns here which tools there are."""
        return self

    def invoke(self, messages: Sequence[Any], config: Any = None) -> AIMessage:
        """Says what comes next, and shows each word as it comes."""
        text, calls = choose_answer(messages)
        id = f"said-{uuid.uuid4()}"
        for word in split_words(text):
            self._pause()
            push_message(AIMessageChunk(word, id=id), state_key=None)
        return AIMessage(text, id=id, tool_calls=calls)


def choose_answer(messages: Sequence[Any]) -> tuple[str, Calls]:
    """The text and the calls of tools that follow a chat."""
    asked = next(str(message.content) for message in reversed(messages) if message.type == "human")
    results = read_results(messages)
    if not results:
        return look_up_orders(asked)
    if results[0].name == "find_order":
        return offer_refunds(asked, results)
    return " ".join([*map(sum_up, results), "Is there anything else I can do for you?"]), []


def read_results(messages: Sequence[Any]) -> list[Any]:
    """The results of tools at the end of a chat."""
    count = next((n for n, message in enumerate(reversed(messages)) if message.type != "tool"), len(messages))
    return list(messages[len(messages) - count :])


def look_up_orders(asked: str) -> tuple[str, Calls]:
    """Looks up each number in what the customer says."""
    orders = re.findall(r"\d+", asked)
    if not orders:
        return "Hello! I can look up an order and refund it. What is its number, and what is wrong with it?", []
    said = f"I am sorry to hear that. Let me look up {' and '.join(orders)} for you."
    return said, [make_call("find_order", order=int(order)) for order in orders]


def offer_refunds(asked: str, results: Sequence[Any]) -> tuple[str, Calls]:
    """Calls for a refund of each order that was found, like "Order 4711: a blue mug, 18 EUR"."""
    found = [re.search(r"Order (\d+): (.*), (\d+) EUR", result.content) for result in results]
    calls = [make_call("refund_order", order=int(f[1]), amount=int(f[3]), reason=asked) for f in found if f]
    orders = " and ".join(f[2] for f in found if f)
    return f"I see: {orders}. I would like to give you your money back. A colleague has to approve that first.", calls


def sum_up(result: Any) -> str:
    """What has become of a call: of one that a person has changed its result says so before the last line."""
    if getattr(result, "status", "") != "error":
        return str(result.content.splitlines()[-1])
    reason = result.content.partition("was not made.")[2].strip()
    return f"My colleague has decided against the refund. {reason}".strip()


def make_call(name: str, **args: Any) -> dict[str, Any]:
    """A call of a tool."""
    return {"type": "tool_call", "id": f"call-{uuid.uuid4()}", "name": name, "args": args}


def split_words(text: str) -> Iterator[str]:
    """The words of a text, each with the space behind it."""
    return iter(re.findall(r"\S+\s*", text))
