"""The type parameters of graphs: their state, context, input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default=Any)
    ContextT = TypeVar("ContextT", default=Any)
    InputT = TypeVar("InputT", default=Any)
    OutputT = TypeVar("OutputT", default=Any)

    class Parametrized(Generic[StateT, ContextT, InputT, OutputT]):
        """What may be written with up to four types, such as ``StateGraph[State, Context]``, or with none."""

else:
    # Before Python 3.13 typing has no type variables with defaults, and a Generic needs all its types.
    from typing import TypeVar

    StateT, ContextT, InputT, OutputT = map(TypeVar, ("StateT", "ContextT", "InputT", "OutputT"))

    class Parametrized:
        """The types are for type checkers alone."""

        def __class_getitem__(cls, types: Any) -> type:
            return cls


__all__ = ["ContextT", "InputT", "OutputT", "Parametrized", "StateT"]
