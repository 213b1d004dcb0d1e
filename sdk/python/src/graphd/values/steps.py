"""What happens while a question is undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

Priority = Literal["low", "normal", "high", "urgent"]


@dataclass(frozen=True, kw_only=True)
class Remind:
    """Reminds people some time after a question was asked: all who may answer when it names no user and no group."""

    after: float | timedelta
    """Seconds since the question was asked."""
    users: Sequence[str] = ()
    groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_names(self.users, self.groups)


@dataclass(frozen=True, kw_only=True)
class Escalate:
    """Lets further people answer some time after a question was asked, or makes it more urgent."""

    after: float | timedelta
    """Seconds since the question was asked."""
    users: Sequence[str] = ()
    groups: Sequence[str] = ()
    priority: Priority | None = None
    """The priority from then on; None leaves it."""

    def __post_init__(self) -> None:
        _check_names(self.users, self.groups)
        check_priority(self.priority)


Step = Remind | Escalate


def check_priority(given: str | None) -> None:
    """Raises ValueError for what is no priority."""
    if given is not None and given not in get_args(Priority):
        raise ValueError(f"priority is {given!r}: want one of {', '.join(get_args(Priority))}")


def _check_names(users: Sequence[str], groups: Sequence[str]) -> None:
    for name, given in (("users", users), ("groups", groups)):
        if isinstance(given, str):
            raise TypeError(f"{name} is {given!r}: want a list of names, like {name}=[{given!r}]")


__all__ = ["Escalate", "Priority", "Remind", "Step", "check_priority"]
