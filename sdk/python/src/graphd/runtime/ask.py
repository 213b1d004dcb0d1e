"""Questions and memos: what a node does that must not happen twice."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

from graphd.errors import GraphInterrupt, InterruptDismissed, InterruptExpired
from graphd.runtime.drift import Drift, check_drift
from graphd.runtime.effect import call_effect
from graphd.runtime.replay import Answer, Question
from graphd.runtime.task import current_scope, required_task
from graphd.values.command import Interrupt

T = TypeVar("T")
OnExpiry = Literal["fail_node", "resume_default", "cancel_run"]


def interrupt(
    value: Any,
    *,
    key: str = "",
    reason: str = "",
    message: str = "",
    schema: dict[str, Any] | None = None,
    ttl: float | timedelta | None = None,
    on_expiry: OnExpiry | None = None,
    default: Any = None,
    assignees: tuple[str, ...] = (),
    drift: Drift | None = None,
    drift_ignore: Sequence[str] = (),
) -> Any:
    """Asks a person, and returns the answer once there is one.

    Until then the node is left by an exception that must not be caught, and
    run again from its first line. Questions without a key are matched with
    their answers by their order; one with a key keeps its answer when the code
    around it changes. Everything but ``value`` is graphd's own.

    An answer is for the question that was shown. When the node asks something
    else on its replay, ``drift`` says what happens: ``"fail"``, ``"ask_again"``
    or ``"accept"``; left out, it is what ``compile(drift=...)`` says, or else
    ``"fail"`` for the reasons ``approval`` and ``tool_call`` and
    ``"ask_again"`` for all others. ``drift_ignore`` names parts that may
    differ: JSON pointers into the value, ``"message"``, ``"schema"``,
    ``"value"``. Use memo for what may change, like prices and times.

    Raises InterruptDismissed or InterruptExpired when no answer will come.
    """
    task = required_task("interrupt()")
    options = {
        "reason": reason,
        "message": message,
        "schema": schema,
        "ttl": ttl,
        "on_expiry": on_expiry,
        "default": default,
        "assignees": tuple(assignees),
        "drift": drift,
        "drift_ignore": check_drift(drift, drift_ignore),
    }
    outcome = task.replay.ask_question(current_scope(), key, value, options)
    if isinstance(outcome, Question):
        raise GraphInterrupt((question_of(outcome),))
    return _use_answer(outcome, value)


def question_of(question: Question) -> Interrupt:
    """The question as programs see it; the server gives it its id."""
    return Interrupt(value=question.value)


def _use_answer(answer: Answer, question: Any) -> Any:
    if answer.dismissed is not None:
        raise InterruptDismissed(answer.dismissed)
    if answer.expired:
        raise InterruptExpired(f"no answer came in time: {question!r}")
    return answer.value


def memo(key: str, fn: Callable[..., T]) -> T:
    """Calls ``fn`` once per task, stores its value, and returns it ever after.

    What stands before an ``interrupt`` runs again with every answer. A memo
    doesn't: use it around payments, e-mails and model calls.

    A function with a parameter ``idempotency_key`` is given one, a text that is
    the same whenever it is called for this memo: hand it to the system that the
    effect is in, and a process that dies between the effect and its record does
    no harm either.
    """
    task = required_task("memo()")
    place, known, value = _look_up_memo(key)
    if known:
        return value  # type: ignore[no-any-return]
    task.host.confirm_lease()
    result = call_effect(fn, task.host, place)
    if inspect.isawaitable(result):
        raise TypeError("memo() got a coroutine: use `await amemo(key, fn)` in async nodes")
    recorded: T = task.host.record_memo(place, result)
    task.replay.keep_memo(place, recorded)
    task.note_progress()
    return recorded


async def amemo(key: str, fn: Callable[..., Awaitable[T] | T]) -> T:
    """Like memo, for async nodes; ``fn`` may be a coroutine function."""
    task = required_task("amemo()")
    place, known, value = _look_up_memo(key)
    if known:
        return value  # type: ignore[no-any-return]
    await task.host.aconfirm_lease()
    result = call_effect(fn, task.host, place)
    if inspect.isawaitable(result):
        result = await result
    recorded: T = await task.host.arecord_memo(place, result)
    task.replay.keep_memo(place, recorded)
    task.note_progress()
    return recorded


def _look_up_memo(key: str) -> tuple[Any, bool, Any]:
    if not key:
        raise ValueError("a memo needs a key")
    task = required_task("memo()")
    place, known, value = task.replay.look_up_memo(current_scope(), key)
    if not known and (waiting := task.replay.open_question(current_scope())) is not None:
        # The node caught the interrupt: nothing new may happen after it.
        raise GraphInterrupt((question_of(waiting),))
    return place, known, value
