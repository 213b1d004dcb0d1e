"""What a node returned or raised, as the server takes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

from google.protobuf import duration_pb2

from graphd import codec
from graphd._gen.v1 import interrupt_pb2, payload_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.constants import ROOT
from graphd.declare.spec import RETRY_MARK, to_duration
from graphd.declare.writes import build_gotos, writes_of
from graphd.errors import InvalidUpdateError, NonDeterministicNode, ParentCommand
from graphd.runtime import exception_text
from graphd.runtime.replay import Question, UsedAnswer
from graphd.values.command import Command, Overwrite, Send
from graphd.values.people import People
from graphd.values.policy import RetryPolicy
from graphd.values.steps import Remind, Step
from graphd.worker.message_ids import MessageIds

_EXPIRY = {
    None: interrupt_pb2.EXPIRY_ACTION_UNSPECIFIED,
    "fail_node": interrupt_pb2.EXPIRY_ACTION_FAIL_NODE,
    "resume_default": interrupt_pb2.EXPIRY_ACTION_RESUME_DEFAULT,
    "cancel_run": interrupt_pb2.EXPIRY_ACTION_CANCEL_RUN,
}

_DRIFT: dict[str | None, interrupt_pb2.Drift] = {
    None: interrupt_pb2.DRIFT_UNSPECIFIED,
    "fail": interrupt_pb2.DRIFT_FAIL,
    "ask_again": interrupt_pb2.DRIFT_ASK_AGAIN,
    "accept": interrupt_pb2.DRIFT_ACCEPT,
}
_PRIORITIES: dict[str | None, interrupt_pb2.Priority] = {
    None: interrupt_pb2.PRIORITY_UNSPECIFIED,
    "low": interrupt_pb2.PRIORITY_LOW,
    "normal": interrupt_pb2.PRIORITY_NORMAL,
    "high": interrupt_pb2.PRIORITY_HIGH,
    "urgent": interrupt_pb2.PRIORITY_URGENT,
}
_DRIFT_WORDS: dict[int, str | None] = {number: word for word, number in _DRIFT.items()}


class UnsendableError(Exception):
    """A value of a result has no JSON form."""

    def __init__(self, what: str, problem: Exception) -> None:
        self.problem = problem
        super().__init__(f"{what} can't be stored: {problem}")

    def for_node(self, node: str) -> Exception:
        """The error of the node, of the class that programs know."""
        kind = TypeError if isinstance(self.problem, TypeError) else ValueError
        return kind(f"node {node!r}: {self}")


def build_completed(
    result: Any, channels: Collection[str], ids: MessageIds, pushed: Sequence[tuple[str, Any]] = ()
) -> pb.TaskCompleted:
    """The result of a node, after what it pushed; InvalidUpdateError when it is none.

    Keys that are not of the state are left out. ParentCommand is raised for a
    command to the enclosing graph.
    """
    if type(result) is dict and not pushed and (update := _build_plain_update(result, channels, ids)) is not None:
        return update
    known = set(channels)
    outcome = pb.TaskCompleted()
    updates: list[list[tuple[str, Any]] | None] = [[(k, v) for k, v in pushed if k in known]]
    for part in _split_result(result, known):
        if isinstance(part, Command):
            if part.graph == Command.PARENT:
                raise ParentCommand(part)
            outcome.goto_targets.extend(build_gotos(part.goto))
            updates.append(writes_of(part.update, known) if part.update is not None else None)
        elif isinstance(part, Send):
            outcome.goto_targets.extend(build_gotos(part))
        else:
            updates.append(writes_of(part, known) if part is not None else None)
    _set_update(outcome, [u for u in updates if u is not None], ids, ROOT in known)
    return outcome


def _build_plain_update(result: dict[Any, Any], channels: Collection[str], ids: MessageIds) -> pb.TaskCompleted | None:
    """What almost every node returns, the short way; None if it is more."""
    if ROOT in channels:
        return None
    for key, value in result.items():
        if key not in channels or isinstance(value, Overwrite):
            return None
    update = {key: ids.add_ids(key, value) for key, value in result.items()}
    return pb.TaskCompleted(update=_build_payload(update) if update else None)


def build_parent_command(command: Command[Any], ids: MessageIds) -> pb.TaskCompleted:
    """A command for the enclosing graph, whose keys are not known here."""
    outcome = pb.TaskCompleted(to_parent=True)
    outcome.goto_targets.extend(build_gotos(command.goto))
    if command.update is not None:
        writes = writes_of(command.update, None)
        _set_update(outcome, [writes], ids, False)
    return outcome


def _split_result(result: Any, known: set[str]) -> list[Any]:
    if isinstance(result, (list, tuple)) and any(isinstance(r, Command) for r in result):
        return list(result)
    if isinstance(result, (list, tuple)) and ROOT in known and any(isinstance(r, Send) for r in result):
        return list(result)
    return [result]


def _set_update(outcome: pb.TaskCompleted, updates: list[list[tuple[str, Any]]], ids: MessageIds, root: bool) -> None:
    flat = [(key, ids.add_ids(key, value)) for update in updates for key, value in update]
    overwritten = any(isinstance(v, Overwrite) for _, v in flat)
    if not overwritten and len({k for k, _ in flat}) == len(flat):
        if root and flat:
            outcome.update.CopyFrom(_build_named_payload("the result", flat[0][1]))
        elif flat:
            outcome.update.CopyFrom(_build_payload(dict(flat)))
        return
    for channel, value in flat:
        whole = isinstance(value, Overwrite)
        written = _build_named_payload(f"the value of {channel!r}", value.value if whole else value)
        outcome.writes.add(channel=channel, value=written, overwrite=whole)


def _build_payload(update: dict[Any, Any]) -> payload_pb2.Payload:
    try:
        return codec.to_payload(update)
    except (TypeError, ValueError):  # say which
        for key, value in update.items():
            _build_named_payload(f"the value of {str(key)!r}", value)
        raise


def _build_named_payload(what: str, value: Any) -> payload_pb2.Payload:
    """A value as it travels; the error of one that can't says what it is."""
    try:
        return codec.to_payload(value)
    except (TypeError, ValueError) as error:
        raise UnsendableError(what, error) from error


def build_asks(questions: Iterable[Question]) -> list[pb.Ask]:
    """The questions of an attempt."""
    return [_build_ask(q) for q in questions]


def _build_ask(question: Question) -> pb.Ask:
    place, options = question.place, question.options
    ask = pb.Ask(
        scope=place.scope,
        key=place.key,
        index=place.index,
        reason=options.get("reason") or "",
        message=options.get("message") or "",
        value=_build_named_payload("the value of the question", question.value),
        ttl=to_duration(options.get("ttl")),
        expiry_action=_EXPIRY[options.get("on_expiry")],
        assignees=options.get("assignees") or (),
        drift=_DRIFT[options.get("drift")],
        drift_ignore=options.get("drift_ignore") or (),
        secret=question.secret,
    )
    if (people := options.get("people")) is not None:
        ask.people.CopyFrom(_build_people(people))
    ask.priority = _PRIORITIES[options.get("priority")]
    ask.steps.extend(_build_step(step) for step in options.get("steps") or ())
    if options.get("undo") is not None:
        ask.undo.CopyFrom(_build_undo(options["undo"]))
    if options.get("schema") is not None:
        ask.response_schema.CopyFrom(codec.to_payload(options["schema"]))
    if options.get("on_expiry") == "resume_default":
        ask.default_response.CopyFrom(codec.to_payload(options.get("default")))
    return ask


def _build_undo(undo: float | timedelta) -> duration_pb2.Duration:
    """How long an answer can be taken back; 0 is sent too, and says not at all."""
    time = duration_pb2.Duration()
    time.FromTimedelta(undo if isinstance(undo, timedelta) else timedelta(seconds=undo))
    return time


def _build_people(people: People) -> interrupt_pb2.People:
    return interrupt_pb2.People(
        users=people.users or (),
        groups=people.groups or (),
        approvals=people.approvals,
        vetoes=people.vetoes,
        agree=people.agree,
        not_requester=people.not_requester,
        exclusive=people.exclusive,
        requester=people.requester,
        not_contributor=people.not_contributor,
        delegable=people.delegable,
        reveal=_build_revealers(people),
    )


def _build_revealers(people: People) -> interrupt_pb2.Audience | None:
    if not people.reveal_users and not people.reveal_groups:
        return None
    return interrupt_pb2.Audience(users=people.reveal_users, groups=people.reveal_groups)


def _build_step(step: Step) -> interrupt_pb2.Step:
    people = interrupt_pb2.Audience(users=step.users, groups=step.groups)
    if isinstance(step, Remind):
        return interrupt_pb2.Step(after=to_duration(step.after), remind=people)
    people.priority = _PRIORITIES[step.priority]
    return interrupt_pb2.Step(after=to_duration(step.after), escalate=people)


def build_used_answers(answers: Iterable[UsedAnswer]) -> list[pb.UsedAnswer]:
    """The answers that an attempt has used."""
    return [
        pb.UsedAnswer(
            scope=u.place.scope,
            key=u.place.key,
            index=u.place.index,
            seen=u.seen,
            secret_seen=u.secret_seen,
            asked=None if u.asked is None else _build_ask(u.asked),
        )
        for u in answers
    ]


def drift_of(number: int) -> str | None:
    """The word for what a graph says of replays that ask something else."""
    return _DRIFT_WORDS.get(number)


def build_failed(error: BaseException, policies: tuple[RetryPolicy, ...]) -> pb.TaskFailed:
    """A failed attempt, and whether the policies of the node want another."""
    bases = [c.__name__ for c in type(error).__mro__[1:] if c not in (BaseException, object)]
    matching = next((i for i, p in enumerate(policies) if p.matches_error(error)), None)
    if matching is not None and len(policies) > 1:
        bases.append(RETRY_MARK.format(matching))
    return pb.TaskFailed(
        type=exception_text.kind_of(error),
        message=exception_text.text_of(error),
        stack=exception_text.stack_of(error),
        non_retryable=matching is None,
        cause=_cause_of(error),
        base_types=bases,
    )


def build_too_large(size: int, limit: int) -> pb.TaskResult:
    """In place of a result that the server does not take."""
    message = (
        f"the result has {size} bytes; at most {limit} are allowed, so store large values elsewhere "
        "and pass on where they are"
    )
    cause = pb.TaskFailed.CAUSE_TOO_LARGE
    return pb.TaskResult(failed=pb.TaskFailed(type="ResultTooLarge", message=message, cause=cause, non_retryable=True))


def build_not_taken(error: Exception) -> pb.TaskResult:
    """In place of a result that the server has refused."""
    message = f"the server did not take the result: {error}"
    return pb.TaskResult(failed=pb.TaskFailed(type=type(error).__name__, message=message, non_retryable=True))


def _cause_of(error: BaseException) -> pb.TaskFailed.Cause:
    if isinstance(error, NonDeterministicNode):
        return pb.TaskFailed.CAUSE_NON_DETERMINISTIC
    if isinstance(error, InvalidUpdateError):
        return pb.TaskFailed.CAUSE_INVALID_UPDATE
    return pb.TaskFailed.CAUSE_USER_CODE
