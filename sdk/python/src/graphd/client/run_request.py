"""What to ask of the server for an invoke or stream call."""

from __future__ import annotations

import numbers
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd._gen.v1 import event_pb2, run_pb2
from graphd._gen.v1 import graph_service_pb2 as gs
from graphd.client.labels import EXIT, to_labels
from graphd.client.options import CallOptions
from graphd.declare.graph_shape import GraphShape
from graphd.declare.writes import build_gotos, build_payload, build_update_payload, update_object
from graphd.errors import EmptyInputError, InvalidUpdateError
from graphd.names import checkpoint_ref
from graphd.runtime.wire_context import build_wire_context
from graphd.values.command import Command

_MOST_STEPS = (1 << 31) - 2  # a program may say that it wants no limit
_ID = re.compile(r"[0-9a-f]{32}")
_RUN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


# Rights without which a call may begin all the same, as the server names them.
DISCARD_QUESTIONS = "discard-questions"
REPLACE_SETTINGS = "replace-settings"
OPTIONAL_RIGHTS = frozenset({DISCARD_QUESTIONS, REPLACE_SETTINGS})


@dataclass(frozen=True)
class CallSpec:
    """One invoke or stream, checked and complete."""

    program: GraphShape
    version: str
    request_id: str
    """Of the call that begins a run or goes on with one."""
    thread: str
    config: Mapping[str, Any]
    options: CallOptions
    event_filter: event_pb2.EventFilter
    withheld: frozenset[str] = frozenset()
    """Rights that the request does not ask for unless the call says so: the caller has not got them."""

    @property
    def gives_settings(self) -> bool:
        """Whether the call has a context, configurable values, breakpoints or a limit of its own."""
        carried = build_wire_context(self.options.context, self.configurable)
        return self.options.gives_settings or carried is not None or step_limit(self.config, self.program) != 0

    def labels(self) -> dict[str, str]:
        """What to remember of the call beside its checkpoints."""
        found = to_labels(self.config)
        return found | ({EXIT: uuid.uuid4().hex} if self.options.durability == "exit" else {})

    @property
    def configurable(self) -> Mapping[str, Any]:
        """The part of the config that names threads and checkpoints."""
        given: Mapping[str, Any] = self.config.get("configurable") or {}
        return given


def build_request(call: CallSpec, given: Any) -> gs.StreamRequest | gs.ResumeRequest:
    """The request for an input, a command, or None."""
    if isinstance(given, Command):
        if given.graph is not None:
            raise InvalidUpdateError("There is no parent graph")
        if given.resume is not None:
            return _resume_request(call, given)
        if given.update is None and given.goto == ():
            raise EmptyInputError("Received empty Command input")
    return _start_request(call, given)


def _start_request(call: CallSpec, given: Any) -> gs.StreamRequest:
    spec = run_pb2.RunSpec(
        thread_id=call.thread,
        create_thread=True,
        graph=call.program.name,
        graph_version=call.version,
        metadata=call.labels(),
        interrupt_before=call.options.interrupt_before,
        interrupt_after=call.options.interrupt_after,
        step_limit=step_limit(call.config, call.program),
        run_id=uuid.uuid4().hex,  # tasks of the run find its caller by it
    )
    if DISCARD_QUESTIONS not in call.withheld:
        spec.open_interrupts = run_pb2.OPEN_INTERRUPT_POLICY_DISCARD
    carried = build_wire_context(call.options.context, call.configurable)
    if carried is not None:
        spec.context.CopyFrom(codec.to_payload(carried))
    checkpoint = call.configurable.get("checkpoint_id")
    if isinstance(given, Command):
        _apply_command(spec, given, call.program)
    elif given is not None:
        spec.input.CopyFrom(build_update_payload(update_object(given, call.program)))
        spec.run_id = _run_id(call.config) or spec.run_id
    if checkpoint and spec.HasField("input"):
        spec.input_at.checkpoint_id = str(checkpoint)
    elif checkpoint:
        spec.replay_from.CopyFrom(checkpoint_ref(call.configurable))
    return gs.StreamRequest(run=spec, filter=call.event_filter, request_id=call.request_id)


def run_id_of(request: gs.StreamRequest | gs.ResumeRequest) -> str | None:
    """The run that a request begins, None for answers: the server knows their run."""
    return request.run.run_id if isinstance(request, gs.StreamRequest) else None


def _run_id(config: Mapping[str, Any]) -> str:
    """The id that the caller gives to a run. The same id again is the same run."""
    given = str(config.get("run_id") or (config.get("metadata") or {}).get("run_id") or "")
    return given if _RUN_ID.fullmatch(given) else ""


def _apply_command(spec: Any, command: Command[Any], program: GraphShape) -> None:
    if command.update is not None:
        if program.function is not None:
            raise InvalidUpdateError("an entrypoint has no state that a Command could update; call it with an input")
        spec.update.CopyFrom(build_update_payload(update_object(command.update, program)))
    spec.goto_targets.extend(build_gotos(command.goto))


def _resume_request(call: CallSpec, command: Command[Any]) -> gs.ResumeRequest:
    answer = command.resume
    if isinstance(answer, dict) and answer and all(isinstance(k, str) and _ID.fullmatch(k) for k in answer):
        given = [
            run_pb2.InterruptResponse(interrupt_id=k, value=build_payload(f"the answer to {k!r}", v))
            for k, v in answer.items()
        ]
    else:
        given = [run_pb2.InterruptResponse(value=build_payload("the answer", answer))]
    return build_resume(call, given, command)


def build_resume(
    call: CallSpec, responses: Sequence[run_pb2.InterruptResponse], command: Command[Any]
) -> gs.ResumeRequest:
    """The request that answers questions: each by its id, or the only one without; none for breakpoints."""
    spec = run_pb2.ResumeSpec(thread_id=call.thread, metadata=call.labels())
    if len(responses) == 1 and not responses[0].interrupt_id:
        spec.single.CopyFrom(responses[0])
    else:
        spec.responses.extend(responses)
    _apply_command(spec, command, call.program)
    if (settings := _build_settings(call)) is not None:
        spec.settings.CopyFrom(settings)
    if not call.configurable.get("checkpoint_ns"):
        spec.expected_checkpoint_id = str(call.configurable.get("checkpoint_id") or "")
    return gs.ResumeRequest(resume=spec, filter=call.event_filter, request_id=call.request_id)


def _build_settings(call: CallSpec) -> run_pb2.RunSettings | None:
    """What the rest of the run goes by; None where it keeps what it has.

    Settings replace those of the run as a whole, and need a right that callers who only
    answer don't have.
    """
    if REPLACE_SETTINGS in call.withheld and not call.gives_settings:
        return None
    carried = build_wire_context(call.options.context, call.configurable)
    settings = run_pb2.RunSettings(
        interrupt_before=call.options.interrupt_before,
        interrupt_after=call.options.interrupt_after,
        step_limit=step_limit(call.config, call.program),
    )
    if carried is not None:
        settings.context.CopyFrom(codec.to_payload(carried))
    return settings


def step_limit(config: Mapping[str, Any], program: GraphShape) -> int:
    """The recursion limit of a config in supersteps, 0 for that of the server; TypeError, ValueError for what is none.

    Taking the input of an entrypoint is a superstep that LangGraph does not have.
    """
    limit: Any = config.get("recursion_limit")
    if limit is None:
        return 0
    is_number = isinstance(limit, numbers.Real)  # mypy takes a Real for no number
    if not is_number:
        raise TypeError(f"recursion_limit must be a number of at least 1, not {limit!r:.200}")
    if not limit >= 1:
        raise ValueError("recursion_limit must be at least 1")
    return int(min(limit, _MOST_STEPS)) + (1 if program.function is not None else 0)
