"""The agent of the test, which says a word when the test lets it: each line on its input is a number of words."""

from __future__ import annotations

import sys
import threading

from fake_model import FakeModel
from shop_agent import main

allowed = threading.Semaphore(0)


def read_numbers() -> None:
    """Lets the model say as many words as each line says."""
    for line in sys.stdin:
        allowed.release(int(line))


def await_word() -> None:
    """Returns when the model may say one word more."""
    allowed.acquire()


threading.Thread(target=read_numbers, daemon=True).start()
main(FakeModel(pause=await_word))
