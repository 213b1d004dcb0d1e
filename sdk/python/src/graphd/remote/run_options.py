"""How a run begins, or goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

WhenBusy = Literal["reject", "enqueue", "cancel", "rollback"]
OpenQuestions = Literal["reject", "discard", "enqueue"]
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run begins. All of it may be left out."""

    version: str = ""
    """Version of the graph; "" for that of the thread, or the newest for a new thread."""
    context: Any = None
    """Values for this run only, that nodes read as ``context``: a dict, a dataclass or a pydantic model."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Labels of the run: scalars."""
    recursion_limit: int | None = None
    """Supersteps that it may take; None for the limit of the graph or the server."""
    run_timeout: float | None = None
    """Seconds that it may work; the time in which it waits for people does not count."""
    begin_after: float | None = None
    """Seconds after which it begins; other runs of the thread go before it until then. None for at once."""
    interrupt_before: Literal["*"] | Sequence[str] | None = None
    """Nodes to stop before; needs the right steer-run."""
    interrupt_after: Literal["*"] | Sequence[str] | None = None
    """Nodes to stop after; needs the right steer-run."""
    checkpoint_id: str = ""
    """The checkpoint to run again from, or to take the input at; needs the right steer-run."""
    expected_checkpoint_id: str = ""
    """Refuse with ConflictError unless this is the newest checkpoint."""
    when_busy: WhenBusy = "reject"
    """What to do when a run of the thread is active: refuse with ThreadBusyError, wait behind it, or cancel it
    and keep (cancel) or remove (rollback) its checkpoints."""
    open_questions: OpenQuestions = "reject"
    """What to do when the thread waits for answers: refuse with OpenQuestionsError, drop the questions (needs the
    right discard-questions), or wait until they are answered."""
    run_id: str = ""
    """An id for the run; the same again with the same input is the same run."""
    request_id: str = ""
    """Makes a call repeatable by the program: the same id with the same content is the same run."""

    def __post_init__(self) -> None:
        _check_word("when_busy", self.when_busy, WhenBusy)
        _check_word("open_questions", self.open_questions, OpenQuestions)
        if self.run_id and not _ID.fullmatch(self.run_id):
            raise ValueError(f"run_id is {self.run_id!r}: want 1 to 128 of A-Z a-z 0-9 _ . : -")
        if self.run_timeout is not None and not self.run_timeout > 0:
            raise ValueError(f"run_timeout is {self.run_timeout!r}: want seconds above 0, or None for no limit")
        if self.begin_after is not None and not self.begin_after > 0:
            raise ValueError(f"begin_after is {self.begin_after!r}: want seconds above 0, or None to begin at once")


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """What goes with answers. Context, limit and breakpoints replace those of the run as a whole, and need the
    right replace-settings; without any of them the run keeps its own."""

    update: Any = None
    """Keys to write to the state; needs the right steer-run."""
    goto: Any = ()
    """Nodes to go to besides, as in ``Command``; needs the right steer-run."""
    context: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    recursion_limit: int | None = None
    interrupt_before: Literal["*"] | Sequence[str] | None = None
    interrupt_after: Literal["*"] | Sequence[str] | None = None
    request_id: str = ""


def _check_word(name: str, given: str, words: Any) -> None:
    if given not in get_args(words):
        raise ValueError(f"{name} is {given!r}: want {', '.join(get_args(words))}")
