"""When a worker may act on behalf of its tasks."""

from __future__ import annotations

import threading

import pytest

from graphd.worker.lease_certainty import LeaseCertainty


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Its only entry is the time."""
    now = [100.0]
    monkeypatch.setattr("graphd.worker.lease_certainty.time.monotonic", lambda: now[0])
    return now


def test_it_is_sure_for_a_while_after_it_asked(clock: list[float]) -> None:
    certainty = LeaseCertainty()
    certainty.set_intervals(beat=10, lease=30)
    certainty.record_question(0)
    clock[0] += 20
    certainty.record_answer(0)
    clock[0] += 3
    assert certainty.is_sure, "23 of 24 seconds"
    clock[0] += 2
    assert not certainty.is_sure, "the answer was late: what counts is when it was asked for"


def test_an_answer_to_an_earlier_beat_does_not_hide_a_pause(clock: list[float]) -> None:
    certainty = LeaseCertainty()
    certainty.set_intervals(beat=10, lease=30)
    certainty.record_question(1)
    clock[0] += 60  # paused, with the answer in the socket
    certainty.record_answer(1)
    assert not certainty.is_sure
    certainty.record_question(2)
    certainty.record_answer(2)
    assert certainty.is_sure


def test_a_broken_connection_leaves_it_in_doubt_until_the_next_greeting(clock: list[float]) -> None:
    certainty = LeaseCertainty()
    certainty.record_question(1)
    certainty.record_disconnect()
    certainty.record_answer(1)
    assert not certainty.is_sure
    certainty.record_question(0)
    certainty.record_answer(0)
    assert certainty.is_sure


def test_who_waits_goes_on_when_it_is_sure_or_over() -> None:
    certainty, over, went_on = LeaseCertainty(), threading.Event(), threading.Event()
    certainty.record_disconnect()
    waiting = threading.Thread(
        target=lambda: (certainty.wait_until(lambda: certainty.is_sure, over.is_set), went_on.set())
    )
    waiting.start()
    assert not went_on.wait(0.1)
    over.set()
    assert went_on.wait(60)
    went_on.clear()
    over.clear()
    waiting = threading.Thread(
        target=lambda: (certainty.wait_until(lambda: certainty.is_sure, over.is_set), went_on.set())
    )
    waiting.start()
    certainty.record_question(0)
    certainty.record_answer(0)
    assert went_on.wait(60)
