"""Values that are computed for each task instead of being stored."""

from graphd.managed.is_last_step import IsLastStep, IsLastStepManager, RemainingSteps, RemainingStepsManager
from graphd.managed.value import ManagedValue

__all__ = ["IsLastStep", "IsLastStepManager", "ManagedValue", "RemainingSteps", "RemainingStepsManager"]
