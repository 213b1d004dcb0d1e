"""What nodes and callers say: questions, commands, sends and overwrites."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from graphd.values.policy import TimeoutPolicy

N = TypeVar("N", bound=Hashable)
if TYPE_CHECKING:  # so that Interrupt alone is Interrupt[Any]
    from typing_extensions import TypeVar as _DefaultTypeVar

    ResponseT = _DefaultTypeVar("ResponseT", default=Any)
else:
    ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True)
class Interrupt(Generic[ResponseT]):
    """One question to a person, and the id to answer it by.

    ``response_schema`` is the JSON Schema of its answers, None when any is one. ``Interrupt[Decision]`` says to
    type checkers what an answer becomes.

    Of graphd alone are ``replaces``, the id of the question whose answer was not
    used because the node asked something else when it ran again, "" for a first
    question, and ``differs``, JSON pointers to what differs from it.
    """

    value: Any
    id: str = "placeholder-id"
    response_schema: type[ResponseT] | dict[str, Any] | None = field(default=None, kw_only=True)
    replaces: str = field(default="", repr=False, compare=False, kw_only=True)
    differs: tuple[str, ...] = field(default=(), repr=False, compare=False, kw_only=True)

    @property
    def interrupt_id(self) -> str:
        """The id, under its older name."""
        return self.id


class Send:
    """Runs a node with an input of its own."""

    __slots__ = ("arg", "node", "timeout")

    def __init__(self, /, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node, self.arg, self.timeout = node, arg, timeout

    def __repr__(self) -> str:
        return f"Send(node={self.node!r}, arg={self.arg!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Send) and (self.node, self.arg) == (other.node, other.arg)

    def __hash__(self) -> int:
        return hash((self.node, repr(self.arg)))


@dataclass(frozen=True, kw_only=True)
class Command(Generic[N]):
    """Changes the state, goes somewhere, or answers questions."""

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    graph: str | None = None
    update: Any | None = None
    resume: Any | None = None
    goto: Send | Sequence[Send | N] | N = ()

    def __repr__(self) -> str:
        given = ", ".join(f"{f.name}={v!r}" for f in fields(self) if (v := getattr(self, f.name)) not in (None, ()))
        return f"Command({given})"


@dataclass
class Overwrite:
    """Replaces the value of a key instead of combining it."""

    value: Any
    type: Literal["__overwrite__"] = field(default="__overwrite__")
