"""The agent as a person uses it: a server, a chat server, and a call per turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from conftest import CommandLine, Start

from graphd.dev import DevServer

HERE = Path(__file__).parent


def turn(server: DevServer, chat: str, *arguments: str, code: int) -> str:
    command = [sys.executable, str(HERE / "agent.py"), *arguments]
    environment = os.environ | {"GRAPHD_SERVER": server.address, "CHAT_URL": chat}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_every_call_is_decided_on_its_own(server: DevServer, start: Start, graphd: CommandLine) -> None:
    chat = start(HERE / "chat_server.py", "--port", "0").says
    asked = turn(server, chat, "Cancel 7, 8, 9 and 10, please", code=3)
    assert asked.startswith("Let me see what I can do.\n")
    assert [json.loads(line)["args"]["order"] for line in asked.splitlines()[1:]] == [7, 8, 9, 10]
    assert len(graphd("inbox")["interrupts"]) == 4

    decisions: list[dict[str, Any]] = [
        {"type": "accept"},
        {"type": "edit", "args": {"args": {"order": 88}}},
        {"type": "response", "args": "Order 9 is on its way already."},
        {"type": "ignore"},
    ]
    told = turn(server, chat, "--answers", json.dumps(decisions), code=0)
    assert sorted(line for line in told.splitlines() if line.startswith("[")) == ["[cancelling 7]", "[cancelling 88]"]
    assert told.splitlines()[-1].strip() == (
        "Order 7 is cancelled. Order 88 is cancelled. Order 9 is on its way already. "
        "The call of cancel_order was ignored by the user."
    )
    assert graphd("inbox").get("interrupts", []) == []
    assert "number" in turn(server, chat, "Thank you!", code=0)
