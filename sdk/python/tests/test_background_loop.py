"""The loop of async nodes whose caller has none."""

from __future__ import annotations

import asyncio
import threading

import pytest

from graphd.worker import background_loop
from graphd.worker.background_loop import find_loop


async def answer() -> int:
    return 7


def ask_loop() -> int:
    return asyncio.run_coroutine_threadsafe(answer(), find_loop(None)).result(60)


def test_nodes_share_a_loop() -> None:
    assert ask_loop() == 7
    assert find_loop(None) is find_loop(None)


def test_a_process_that_was_forked_has_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Thread(target=lambda: None)  # as all threads of the process before the fork
    ended.start()
    ended.join()
    monkeypatch.setattr(background_loop, "_loops", [(asyncio.new_event_loop(), ended)])
    assert ask_loop() == 7
