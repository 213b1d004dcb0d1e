"""Values that tell how far the run is from its last superstep."""

from __future__ import annotations

from typing import Annotated

from graphd.managed.value import ManagedValue


class IsLastStepManager(ManagedValue):
    """True in the last superstep that the run may take."""

    @staticmethod
    def get(step: int, stop: int) -> bool:
        return step == stop - 1


class RemainingStepsManager(ManagedValue):
    """How many supersteps the run may still take, this one included."""

    @staticmethod
    def get(step: int, stop: int) -> int:
        return stop - step


IsLastStep = Annotated[bool, IsLastStepManager]
RemainingSteps = Annotated[int, RemainingStepsManager]
