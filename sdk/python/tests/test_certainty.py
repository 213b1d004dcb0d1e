"""When a worker may act on behalf of its tasks."""

from __future__ import annotations

import threading

import pytest

from graphd.worker.certainty import Certainty


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only entry is the time."""
    now = [100.0]
    monkeypatch.setattr("graphd.worker.certainty.time.monotonic", lambda: now[0])
    return now


def test_it_is_sure_for_a_while_after_it_asked(clock: list[float]) -> None:
    certainty = Certainty()
    certainty.granted(beat=10, lease=30)
    certainty.asked(0)
    clock[0] += 20
    certainty.answered(0)
    clock[0] += 3
    assert certainty.sure, "23 of 24 seconds"
    clock[0] += 2
    assert not certainty.sure, "the answer was late: what counts is when it was asked for"


def test_an_answer_to_an_earlier_beat_does_not_hide_a_pause(clock: list[float]) -> None:
    certainty = Certainty()
    certainty.granted(beat=10, lease=30)
    certainty.asked(1)
    clock[0] += 60  # paused, with the answer in the socket
    certainty.answered(1)
    assert not certainty.sure
    certainty.asked(2)
    certainty.answered(2)
    assert certainty.sure


def test_a_broken_connection_leaves_it_in_doubt_until_the_next_greeting(clock: list[float]) -> None:
    certainty = Certainty()
    certainty.asked(1)
    certainty.doubt()
    certainty.answered(1)
    assert not certainty.sure
    certainty.asked(0)
    certainty.answered(0)
    assert certainty.sure


def test_who_waits_goes_on_when_it_is_sure_or_over() -> None:
    certainty, over, went_on = Certainty(), threading.Event(), threading.Event()
    certainty.doubt()
    waiting = threading.Thread(target=lambda: (certainty.wait(lambda: certainty.sure, over.is_set), went_on.set()))
    waiting.start()
    assert not went_on.wait(0.1)
    over.set()
    assert went_on.wait(60)
    went_on.clear()
    over.clear()
    waiting = threading.Thread(target=lambda: (certainty.wait(lambda: certainty.sure, over.is_set), went_on.set()))
    waiting.start()
    certainty.asked(0)
    certainty.answered(0)
    assert went_on.wait(60)
