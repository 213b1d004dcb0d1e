"""Questions and memos: what a node does that must not happen twice."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar, overload

from graphd.errors import GraphInterrupt, InterruptDismissed, InterruptExpired
from graphd.runtime.drift import Drift, check_drift
from graphd.runtime.effect import call_effect
from graphd.runtime.replay import Answer, Question
from graphd.runtime.response_schema import RefusedAnswer, ResponseSchema, read_response_schema
from graphd.runtime.secret import check_secret
from graphd.runtime.task import CurrentTask, current_scope, required_task
from graphd.values.command import Interrupt
from graphd.values.people import People
from graphd.values.steps import Priority, Step, check_priority

T = TypeVar("T")
OnExpiry = Literal["fail_node", "resume_default", "cancel_run"]


@overload
def interrupt(
    value: Any,
    *,
    response_schema: type[T],
    key: str = "",
    reason: str = "",
    message: str = "",
    ttl: float | timedelta | None = None,
    on_expiry: OnExpiry | None = None,
    default: Any = None,
    assignees: tuple[str, ...] = (),
    people: People | None = None,
    priority: Priority | None = None,
    steps: Sequence[Step] = (),
    undo: float | timedelta | None = None,
    drift: Drift | None = None,
    drift_ignore: Sequence[str] = (),
    secret: Sequence[str] = (),
) -> T: ...


@overload
def interrupt(
    value: Any,
    *,
    response_schema: dict[str, Any] | None = None,
    key: str = "",
    reason: str = "",
    message: str = "",
    schema: dict[str, Any] | None = None,
    ttl: float | timedelta | None = None,
    on_expiry: OnExpiry | None = None,
    default: Any = None,
    assignees: tuple[str, ...] = (),
    people: People | None = None,
    priority: Priority | None = None,
    steps: Sequence[Step] = (),
    undo: float | timedelta | None = None,
    drift: Drift | None = None,
    drift_ignore: Sequence[str] = (),
    secret: Sequence[str] = (),
) -> Any: ...


def interrupt(
    value: Any,
    *,
    response_schema: type | dict[str, Any] | None = None,
    key: str = "",
    reason: str = "",
    message: str = "",
    schema: dict[str, Any] | None = None,
    ttl: float | timedelta | None = None,
    on_expiry: OnExpiry | None = None,
    default: Any = None,
    assignees: tuple[str, ...] = (),
    people: People | None = None,
    priority: Priority | None = None,
    steps: Sequence[Step] = (),
    undo: float | timedelta | None = None,
    drift: Drift | None = None,
    drift_ignore: Sequence[str] = (),
    secret: Sequence[str] = (),
) -> Any:
    """Asks a person, and returns the answer once there is one.

    Until then the node is left by an exception that must not be caught, and
    run again from its first line. Questions without a key are matched with
    their answers by their order; one with a key keeps its answer when the code
    around it changes. Everything but ``value`` and ``response_schema`` is graphd's own.

    ``response_schema`` says what an answer must be: a JSON Schema, or a pydantic model,
    a TypedDict or a dataclass, which is shown as a JSON Schema and whose object is
    returned; classes need pydantic. The server refuses other answers before it stores
    them: InvalidResumeError in the caller. What only the validators of a class refuse
    is asked anew, with the reason as its message, and a caller in the same process gets
    pydantic's ValidationError; is_invalid_resume knows both. ``schema`` is the older
    name, for a JSON Schema.

    ``assignees`` names who should answer, and inboxes filter by it. ``people`` says who may
    answer and how many must: the server refuses everybody else. ``priority`` says how urgent
    it is. ``steps`` happen while the question is undecided: Remind and Escalate, in order and before the ``ttl``.
    ``undo`` says how long an answer can be taken back (seconds, at most a day): the node goes on after
    that. 0 is not at all; left out, it is what the server says (``graphd serve --undo``).

    An answer is for the question that was shown. When the node asks something
    else on its replay, ``drift`` says what happens: ``"fail"``, ``"ask_again"``
    or ``"accept"``; left out, it is what ``compile(drift=...)`` says, or else
    ``"fail"`` for the reasons ``approval`` and ``tool_call`` and with ``people``, and
    ``"ask_again"`` for all others. ``drift_ignore`` names parts that may
    differ: JSON pointers into the value, ``"message"``, ``"schema"``,
    ``"value"``. Use memo for what may change, like prices and times.

    ``secret`` names parts of the value and of the answer that not everybody sees: JSON pointers into both, like
    ``"/card"``, or ``""`` for the whole. Clients see ``{"__redacted__": true}`` in their place, and ``inbox.reveal``
    shows them to who may see them, with an entry in the trail. The node gets the whole answer. ``message`` and
    ``response_schema`` are shown as they are. A server without encryption keys fails the node.

    Raises InterruptDismissed or InterruptExpired when no answer will come, TypeError
    for a ``response_schema`` that has no JSON Schema, and ValueError for a ``default``
    that it refuses.
    """
    task = required_task("interrupt()")
    if schema is not None and response_schema is not None:
        raise TypeError("interrupt() takes response_schema or schema, which is its older name, not both")
    check_priority(priority)
    wanted = read_response_schema(schema if response_schema is None else response_schema)
    pointers = check_secret(secret)
    if on_expiry == "resume_default":
        _check_default(wanted, default, pointers)
    options = {
        "reason": reason,
        "message": message,
        "schema": wanted.json_schema,
        "ttl": ttl,
        "on_expiry": on_expiry,
        "default": default,
        "assignees": tuple(assignees),
        "people": people,
        "priority": priority,
        "steps": tuple(steps),
        "undo": undo,
        "drift": drift,
        "drift_ignore": check_drift(drift, drift_ignore),
        "secret": pointers,
    }
    answer = _ask(task, key, value, options)
    while True:
        try:
            return wanted.read_answer(answer)
        except RefusedAnswer as caught:
            refused = caught
        # The same place of every replay. Behind the except clause, so that no exception has the answer in its context.
        answer = _ask(task, key, value, _explain(options, refused), refused)


_NOT_SHOWN = "why is not shown, because it has secret parts"


def _check_default(wanted: ResponseSchema, default: Any, secret: Sequence[str]) -> None:
    try:
        wanted.read_answer(default)
    except RefusedAnswer as refused:  # it would be refused, and asked anew, each time the question expires
        if secret:
            raise ValueError(f"interrupt(): default is no answer, response_schema refuses it; {_NOT_SHOWN}") from None
        raise ValueError(f"interrupt(): default is no answer, response_schema refuses it: {refused}") from refused.error


def _ask(
    task: CurrentTask, key: str, value: Any, options: Mapping[str, Any], refused: RefusedAnswer | None = None
) -> Any:
    """The answer to the next question; leaves the node when there is none yet."""
    outcome = task.replay.ask_question(current_scope(), key, value, options)
    if not isinstance(outcome, Question):
        return _use_answer(outcome, "a question with secret parts" if options["secret"] else repr(value))
    if refused is not None:
        task.refused.append(refused.error)
    raise GraphInterrupt((question_of(outcome),))


def _explain(options: Mapping[str, Any], refused: RefusedAnswer) -> dict[str, Any]:
    """The options of a question that is asked anew because its answer was refused."""
    why = f"the last answer was refused: {_NOT_SHOWN if options['secret'] else refused}"
    message = f"{options['message']}\n{why}" if options["message"] else why
    # The text of the refusal may be another one with another pydantic.
    return {**options, "message": message, "drift_ignore": (*options["drift_ignore"], "message")}


def question_of(question: Question) -> Interrupt[Any]:
    """The question as programs, and what traces them, see it; the server gives it its id."""
    return Interrupt(value=question.shown_value(), response_schema=question.options.get("schema"))


def _use_answer(answer: Answer, question: str) -> Any:
    if answer.dismissed is not None:
        raise InterruptDismissed(answer.dismissed)
    if answer.expired:
        raise InterruptExpired(f"no answer came in time: {question}")
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
