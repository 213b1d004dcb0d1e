"""Who may answer a question, and how many must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class People:
    """Who may answer a question, and how many must.

    The server refuses the answer of other callers: AccessDeniedError. A server that does
    not know its callers keeps no policy that names people or needs several: the node fails.
    """

    users: Sequence[str] | None = None
    """Who may answer: these users, and members of ``groups``. Without both, every caller with the right to answer."""
    groups: Sequence[str] | None = None
    approvals: int = 1
    """How many people must give the same answer."""
    vetoes: int = 1
    """How many answers that do not agree decide."""
    agree: str = ""
    """A CEL condition over ``answer``, like ``"answer.decision != 'rejected'"``: whether an answer agrees. Without
    one every answer does."""
    not_requester: bool = False
    """The requester may not answer."""
    requester: str = ""
    """Who wants what is asked for; left out, it is who started the run."""
    exclusive: bool = False
    """Only who has claimed the question may answer it."""
    not_contributor: bool = False
    """Who has edited the state since the run began may not answer."""
    delegable: bool = False
    """Those who may answer may name another user who answers in their place: ``inbox.delegate``."""
    reveal_users: Sequence[str] = ()
    """Who may see the secret parts: these users, and members of ``reveal_groups``. Without both, who may answer."""
    reveal_groups: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("users", "groups", "reveal_users", "reveal_groups"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f"{name} is {given!r}: want a list of names, like {name}=[{given!r}]")
        named = [given for given in (self.users, self.groups) if given is not None]
        if named and not any(named):
            raise ValueError(
                "users and groups are empty, and then every caller might answer: name one, or leave them out"
            )
        for name in ("approvals", "vetoes"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ValueError(f"{name} is {number!r}: want a number of people, at least 1")
