"""What is tried again by itself."""

from __future__ import annotations

import pytest

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.trail import Trail
from graphd.errors import GraphdError
from graphd.transport.patience import passes


@pytest.mark.parametrize("reason", ["STORE_BUSY", "STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "TOO_MANY_RUNS"])
def test_a_call_that_may_pass_is_made_again(reason: str) -> None:
    problem = GraphdError("no", reason=reason, code="UNAVAILABLE")
    assert passes(problem)
    assert Trail(gs.StreamRequest(request_id="same")).pause(problem) > 0


def test_a_full_store_is_told_at_once() -> None:
    problem = GraphdError("no", reason="STORE_FULL", code="RESOURCE_EXHAUSTED")
    with pytest.raises(GraphdError):
        Trail(gs.StreamRequest(request_id="same")).pause(problem)
