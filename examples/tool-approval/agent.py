"""An agent that cancels orders, each only when a person agrees.

python agent.py "Please cancel my orders 7 and 8"
python agent.py --answers '[{"type": "accept"}, {"type": "ignore"}]'
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import chat

from graphd import END, START, Command, MessagesState, RetryPolicy, StateGraph, get_stream_writer
from graphd.graph import push_message
from graphd.prebuilt import ToolNode, add_human_in_the_loop, tools_condition

CHAT = os.environ.get("CHAT_URL", "http://127.0.0.1:7802/v1")
SERVER = os.environ.get("GRAPHD_SERVER", "localhost:7700")
MODES = ["messages", "custom", "updates"]
WAITING = 3  # the exit code that the command graphd has for it, too

CANCEL_ORDER = {
    "type": "function",
    "function": {
        "name": "cancel_order",
        "description": "Cancels an order",
        "parameters": {"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}},
    },
}


def cancel_order(order: int) -> str:
    """Stands for a call of a shop."""
    get_stream_writer()(f"cancelling {order}")
    return f"Order {order} is cancelled."


def model(state: MessagesState) -> dict[str, Any]:
    """Asks the model, and shows its words as they come."""
    for message in chat.stream(CHAT, state["messages"], [CANCEL_ORDER]):
        if message.type == "AIMessageChunk":
            push_message(message, state_key=None)
    return {"messages": [message]}


builder = StateGraph(MessagesState)
builder.add_node("model", model, retry_policy=RetryPolicy(max_attempts=3))
builder.add_node("tools", ToolNode([add_human_in_the_loop(cancel_order)]))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition, ["tools", END])
builder.add_edge("tools", "model")


def answers_of(questions: list[Any], given: list[Any]) -> dict[str, Any] | None:
    """One answer per question, by its id; None without an answer."""
    if given:
        if len(given) != len(questions):
            raise SystemExit(f"{len(questions)} questions are open, and there are {len(given)} answers")
        return {q.id: answer for q, answer in zip(questions, given, strict=True)}
    if not sys.stdin.isatty():
        return None
    return {q.id: ask(q.value) for q in questions}


def ask(question: dict[str, Any]) -> dict[str, Any]:
    """Asks on the terminal."""
    action = question["action_request"]
    print(f"{action['action']}({action['args']})? accept, ignore, an order number to take instead, or a reply")
    said = input("> ").strip()
    if said in ("accept", "ignore"):
        return {"type": said}
    if said.isdigit():
        return {"type": "edit", "args": {"args": {"order": int(said)}}}
    return {"type": "response", "args": said}


def show(stream: Iterator[tuple[str, Any]]) -> list[Any]:
    """Prints a run as it happens; returns the questions it stopped at."""
    questions: list[Any] = []
    for mode, item in stream:
        if mode == "messages":
            message, _ = item
            if message.type == "AIMessageChunk":
                print(message.content, end="", flush=True)
        elif mode == "custom":
            print(f"[{item}]", flush=True)
        elif "__interrupt__" in item:
            questions.extend(item["__interrupt__"])
        elif "model" in item:
            print(flush=True)
    return questions


def main() -> int:
    """Runs a chat until it ends or no answer comes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", help="what to say; without it the thread goes on where it waits")
    parser.add_argument("--thread", default="chat-1", help="the conversation")
    parser.add_argument("--answers", default="[]", type=json.loads, help="JSON list, one answer per open question")
    given = parser.parse_args()
    graph = builder.compile(server=SERVER, name="tool-approval")
    config = {"configurable": {"thread_id": given.thread}}
    answers = given.answers
    if given.text:
        questions = show(graph.stream({"messages": [("user", given.text)]}, config, stream_mode=MODES))
    else:
        questions = list(graph.get_state(config).interrupts)
    while questions:
        if (chosen := answers_of(questions, answers)) is None:
            for question in questions:
                print(json.dumps(question.value["action_request"]))
            return WAITING
        answers = []
        questions = show(graph.stream(Command(resume=chosen), config, stream_mode=MODES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
