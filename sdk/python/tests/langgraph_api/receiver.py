"""An address that webhooks of runs are sent to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """An address that is told of runs."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.refusals = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if receiver.refusals > 0:
                    receiver.refusals -= 1
                    self.send_response(503)
                else:
                    receiver.told.append({"path": self.path, "id": self.headers["webhook-id"], **json.loads(body)})
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    async def wait(self, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """What it is told, as soon as that is enough."""
        for _ in range(3000):
            if enough(self.told):
                return self.told
            await asyncio.sleep(0.02)
        raise AssertionError(f"it was told {self.told}")
