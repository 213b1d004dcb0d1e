"""A client of OpenAI-compatible chat servers, with the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from graphd.messages import AIMessage, AIMessageChunk


def stream(url: str, messages: Sequence[Any], tools: Sequence[dict[str, Any]]) -> Iterator[AIMessageChunk | AIMessage]:
    """Yields the pieces of the answer, and at last the whole of it."""
    id, text, calls = f"chat-{uuid.uuid4().hex}", "", dict[int, dict[str, str]]()
    for delta in _deltas(
        url, {"model": "any", "stream": True, "messages": [_wire(m) for m in messages], "tools": tools}
    ):
        if piece := delta.get("content"):
            text += piece
            yield AIMessageChunk(piece, id=id)
        for part in delta.get("tool_calls") or []:
            call = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += part.get("id") or ""
            call["name"] += part["function"].get("name") or ""
            call["arguments"] += part["function"].get("arguments") or ""
    yield AIMessage(text, id=id, tool_calls=[_call(calls[index]) for index in sorted(calls)])


def _call(call: dict[str, str]) -> dict[str, Any]:
    return {"type": "tool_call", "id": call["id"], "name": call["name"], "args": json.loads(call["arguments"] or "{}")}


def _deltas(url: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with _open(request) as response:
        for line in response:
            data = line.decode().removeprefix("data: ").strip()
            if data and data != "[DONE]":
                yield json.loads(data)["choices"][0]["delta"]


def _open(request: urllib.request.Request) -> Any:
    try:
        return urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as e:
        raise ConnectionError(f"no answer from {request.full_url}: {e.reason}; is chat_server.py running?") from None


def _wire(message: Any) -> dict[str, Any]:
    if message.type == "human":
        return {"role": "user", "content": message.content}
    if message.type == "tool":
        return {"role": "tool", "content": message.content, "tool_call_id": message.tool_call_id}
    calls = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["args"])}}
        for c in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content} | ({"tool_calls": calls} if calls else {})
