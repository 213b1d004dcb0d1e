"""A chat server that only pretends: OpenAI's wire format, canned thoughts.

It answers POST /v1/chat/completions with a stream of pieces. To a person it
replies with one tool call per order number it reads, to results of tools with
a sentence about each of them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


def deltas(messages: list[Json]) -> Iterator[Json]:
    """What the model says next, in pieces."""
    last = messages[-1]
    orders = re.findall(r"\d+", last["content"]) if last["role"] == "user" else []
    if orders:
        yield from words("Let me see what I can do.")
        for index, order in enumerate(orders):
            yield from tool_call(index, f"call-{len(messages)}-{order}", "cancel_order", {"order": int(order)})
        return
    results = results_of_last_turn(messages)
    yield from words(" ".join(results) if results else "Tell me the numbers of the orders to cancel.")


def words(text: str) -> Iterator[Json]:
    """A text, word by word."""
    for word in re.findall(r"\S+\s*", text):
        yield {"content": word}


def tool_call(index: int, id: str, name: str, arguments: Json) -> Iterator[Json]:
    """A tool call: its head, then its arguments in two halves."""
    text = json.dumps(arguments)
    yield {"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}
    for half in (text[: len(text) // 2], text[len(text) // 2 :]):
        yield {"tool_calls": [{"index": index, "function": {"arguments": half}}]}


def results_of_last_turn(messages: list[Json]) -> list[str]:
    """The results of tools at the end of the chat."""
    found: list[str] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        found.append(message["content"])
    return found[::-1]


class Handler(BaseHTTPRequestHandler):
    """Serves the one path there is."""

    def do_POST(self) -> None:
        """Streams the answer to a chat."""
        if self.path != "/v1/chat/completions":
            self.send_error(404, "only /v1/chat/completions is here")
            return
        try:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            check(messages)
        except (ValueError, KeyError, TypeError) as error:
            self.send_error(400, f"not a chat: {error}")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for delta in deltas(messages):
            self.wfile.write(f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps quiet."""


def check(messages: list[Json]) -> None:
    """Refuses what real servers refuse: a tool call without its answer."""
    answered = {m.get("tool_call_id") for m in messages if m["role"] == "tool"}
    open_calls = [c["id"] for m in messages for c in m.get("tool_calls") or [] if c["id"] not in answered]
    if open_calls:
        raise ValueError(f"tool calls without an answer: {', '.join(open_calls)}")


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7802, help="0 is any free one")
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
