"""Kinds of state keys. They only declare: the values live in the server."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin

from graphd.compatibility.imports import explain_absent_names
from graphd.errors import EmptyChannelError
from graphd.messages import add_messages

T = TypeVar("T")


@dataclass(frozen=True)
class Declaration:
    """How the server is to keep a key."""

    reducer: str = "last"
    default: Any = None
    has_default: bool = False
    function: Callable[[Any, list[Any]], Any] | None = None


class BaseChannel(Generic[T]):
    """A kind of state key, for use in ``Annotated[T, channel]``."""

    def __init__(self, typ: Any = Any, key: str = "") -> None:
        self.typ, self.key = typ, key

    def declare(self) -> Declaration:
        """What to tell the server."""
        raise NotImplementedError

    def same_as(self, other: BaseChannel[Any]) -> bool:
        """Two schemas mean the same by their declarations of a key."""
        return type(self) is type(other)


class LastValue(BaseChannel[T]):
    """Keeps the value that was written; takes one per superstep."""

    def declare(self) -> Declaration:
        return Declaration()


class AnyValue(BaseChannel[T]):
    """Keeps the last of the values written in a superstep."""

    def declare(self) -> Declaration:
        return Declaration("any")


class EphemeralValue(BaseChannel[T]):
    """Holds a value for one superstep."""

    def __init__(self, typ: Any = Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def declare(self) -> Declaration:
        return Declaration("ephemeral")


class UntrackedValue(BaseChannel[T]):
    """Lives as long as the run and is never stored."""

    def __init__(self, typ: Any = Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def declare(self) -> Declaration:
        return Declaration("untracked")


class Topic(BaseChannel[T]):
    """Collects the values of a superstep, or of all with ``accumulate``."""

    def __init__(self, typ: Any = Any, accumulate: bool = False) -> None:
        super().__init__(typ)
        self.accumulate = accumulate

    def declare(self) -> Declaration:
        return Declaration("topic" if self.accumulate else "topic_once")


class BinaryOperatorAggregate(BaseChannel[T]):
    """Combines each value with the one before it."""

    def __init__(self, typ: Any, operator: Callable[[Any, Any], Any]) -> None:
        super().__init__(typ)
        self.operator = operator

    def declare(self) -> Declaration:
        default, has_default = empty_value(self.typ)
        known = _find_builtin_reducer(self.operator, default)
        if known == "":
            return Declaration("remote", default, has_default, self._fold_writes)
        if known in ("append", "merge", "messages"):
            return Declaration(known)  # empty from the start as it is
        return Declaration(known, default, has_default)

    def same_as(self, other: BaseChannel[Any]) -> bool:
        return isinstance(other, BinaryOperatorAggregate) and (
            self.operator is other.operator
            or getattr(self.operator, "__name__", "") == getattr(other.operator, "__name__", "") == "<lambda>"
        )

    def _fold_writes(self, current: Any, writes: list[Any]) -> Any:
        for value in writes:
            current = self.operator(current, value)
        return current


class DeltaChannel(BaseChannel[T]):
    """Combines all values of a superstep in one call of its reducer.

    graphd stores every list as its additions anyway, so ``snapshot_frequency``
    is accepted and not needed.
    """

    def __init__(
        self, reducer: Callable[[Any, list[Any]], Any], typ: Any = list, *, snapshot_frequency: int | None = None
    ) -> None:
        super().__init__(typ)
        self.reducer, self.snapshot_frequency = reducer, snapshot_frequency

    def declare(self) -> Declaration:
        default, has_default = empty_value(self.typ)
        return Declaration("remote", default, has_default, self.reducer)


_ADDING = {"list": "append", "tuple": "append", "int": "add", "float": "add", "str": "add"}
_JOINING = {"dict": "merge", "set": "union", "frozenset": "union"}


def _find_builtin_reducer(function: Callable[..., Any], default: Any) -> str:
    """The server's own reducer that does what the function does, or ""."""
    if function is add_messages:
        return "messages"
    if function in (operator.add, operator.concat, operator.iadd):
        return _ADDING.get(type(default).__name__, "")
    if function in (operator.or_, operator.ior):
        return _JOINING.get(type(default).__name__, "")
    if function in (max, min) and type(default) in (int, float, str):
        return "max" if function is max else "min"
    return ""


_EMPTY: dict[str, Callable[[], Any]] = {
    "Sequence": list,
    "MutableSequence": list,
    "Set": set,
    "MutableSet": set,
    "Mapping": dict,
    "MutableMapping": dict,
}


def empty_value(typ: Any) -> tuple[Any, bool]:
    """The value a key of this type has before the first write, if any."""
    origin = get_origin(typ) or typ
    make = _EMPTY.get(getattr(origin, "__name__", ""), origin)
    try:
        return make(), True
    except Exception:  # a type that needs arguments has no empty value
        return None, False


if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = [
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "EmptyChannelError",
    "EphemeralValue",
    "LastValue",
    "Topic",
    "UntrackedValue",
]
