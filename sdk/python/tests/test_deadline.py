"""When the time of a call is over, and what is said then."""

from __future__ import annotations

import pytest

from graphd.errors import CallTimeoutError, GraphdError
from graphd.transport.attempts import NO_DEADLINE, Attempts, Deadline


def test_a_reset_at_the_deadline_is_the_deadline() -> None:
    reset = GraphdError("Stream removed (RST_STREAM)", code="CANCELLED")
    with pytest.raises(CallTimeoutError, match=r"no answer within 0\.2 s"):
        Deadline(0.2).check_problem(reset)
    for other in (Deadline(60), NO_DEADLINE):
        other.check_problem(reset)
    Deadline(0.2).check_problem(GraphdError("the client left", code="CANCELLED", reason="CANCELLED"))


def test_no_attempt_begins_after_the_deadline() -> None:
    away = GraphdError("away", code="UNAVAILABLE")
    with pytest.raises(CallTimeoutError) as late:
        Attempts(opened=True, deadline=Deadline(0.01)).next_pause(away)
    assert late.value.__cause__ is away
    assert 0 < Attempts(opened=True, deadline=Deadline(60)).next_pause(away) < 1


def test_other_problems_are_raised_as_they_are() -> None:
    denied = GraphdError("no", code="PERMISSION_DENIED", reason="ACCESS_DENIED")
    with pytest.raises(GraphdError) as raised:
        Attempts(opened=True, deadline=Deadline(60)).next_pause(denied)
    assert raised.value is denied
