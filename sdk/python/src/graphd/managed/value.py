"""What all managed values are."""

from __future__ import annotations


class ManagedValue:
    """Computed from the superstep and the superstep that may not run any more."""

    @staticmethod
    def get(step: int, stop: int) -> object:
        """The value for a task of this superstep."""
        raise NotImplementedError
