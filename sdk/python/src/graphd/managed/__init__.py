"""Values that are computed for each task instead of being stored."""

from __future__ import annotations

from typing import Annotated


class ManagedValue:
    """Computed from the superstep and the superstep that may not run any more."""

    @staticmethod
    def get(step: int, stop: int) -> object:
        """The value for a task of this superstep."""
        raise NotImplementedError


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
