"""An ASGI program that answers the requests of the benchmark from memory: what LangGraph's SDK can do at most."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

THREAD = {
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
    "metadata": {},
    "status": "idle",
    "values": None,
}
ASKED = {"x": 1, "__interrupt__": [{"value": 1, "id": "c5a7b0a9d1c34b1d8f5a0c4e2b6d7f80"}]}
EVENTS = [
    ("metadata", {"run_id": str(uuid.uuid4()), "attempt": 1}),
    *(("updates", {f"n{i}": {"x": i + 1}}) for i in range(10)),
]
STREAM = "".join(f"event: {event}\r\ndata: {json.dumps(data)}\r\n\r\n" for event, data in EVENTS).encode()


def answer(path: str, body: bytes) -> tuple[bytes, bytes]:
    """The type and the body of an answer."""
    request: dict[str, Any] = json.loads(body or b"{}")
    if path.endswith("/runs/stream"):
        return b"text/event-stream", STREAM
    if path.endswith("/runs/wait"):
        if request["assistant_id"] == "chain":
            values: Any = {"x": 10}
        else:
            values = {"x": 2, "answer": "yes"} if request.get("command") else ASKED
    else:
        values = {"thread_id": str(uuid.uuid4()), **THREAD}
    return b"application/json", json.dumps(values).encode()


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    kind, content = answer(scope["path"], body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": content})
