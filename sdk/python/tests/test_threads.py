"""The threads in which plain code waits for servers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from graphd.threads import run_blocking

_FORK = """
import asyncio, os
from graphd.threads import memo_threads, run_blocking, saver_threads

async def use_all():
    calls = (call(lambda: "done") for call in (run_blocking, memo_threads.run, saver_threads.run))
    return await asyncio.wait_for(asyncio.gather(*calls), 60)

assert asyncio.run(use_all()) == ["done"] * 3
child = os.fork()
if child == 0:
    os._exit(0 if asyncio.run(use_all()) == ["done"] * 3 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORK], check=True, timeout=120)


def test_a_call_sees_the_context_of_its_caller() -> None:
    async def ask() -> object:
        return await run_blocking(int, "ff", base=16)

    assert asyncio.run(ask()) == 255
