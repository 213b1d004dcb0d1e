"""Reads what an assignment brings: the state, what was done before, and the failure that a handler is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphd import codec
from graphd._gen.v1 import payload_pb2
from graphd._gen.v1 import worker_task_pb2 as pb
from graphd.declare.schema import Schema
from graphd.runtime.failures import node_error
from graphd.runtime.local_runs import LocalRun
from graphd.runtime.replay import Answer, DriftRules, Place, Replay
from graphd.worker import outcome
from graphd.worker.kept_values import KeptValue


def read_input(assignment: pb.TaskAssignment, schema: Schema, kept: Mapping[str, KeptValue]) -> Any:
    """What the code is called with: the input of a Send, or the state as the schema declares it."""
    if assignment.HasField("send_input"):
        return _read_send(codec.value_of(assignment.send_input), schema)
    stored = {
        name: kept[name].load() if name in kept else codec.value_of(value)
        for name, value in assignment.channels.items()
    }
    for name, managed in schema.managed().items():
        stored[name] = managed.get(assignment.step, assignment.stop_step)
    return schema.build_value(stored)


def _read_send(value: Any, schema: Schema) -> Any:
    if not isinstance(value, Mapping) or schema.is_root:
        return value
    read = {k: schema.keys[k].decode(v) if k in schema.keys else v for k, v in value.items()}
    return schema.construct(read) if set(read) <= set(schema.keys) else read


def build_replay(journal: pb.Journal) -> Replay:
    """The journal of an assignment, ready to be matched."""
    answers: dict[Place, Answer] = {}
    memos: dict[Place, Any] = {}
    for entry in journal.entries:
        place = Place(entry.scope, entry.key, entry.index)
        if entry.WhichOneof("entry") == "memo":
            memos[place] = codec.value_of(entry.memo)
        else:
            answers[place] = _read_answer(entry.answer)
    return Replay(answers, memos, DriftRules(outcome.drift_of(journal.drift), tuple(journal.drift_ignore)))


def _read_answer(answer: pb.Answer) -> Answer:
    kind = answer.WhichOneof("outcome")
    return Answer(
        value=codec.value_of(answer.value) if kind == "value" else None,
        dismissed=answer.dismissed.reason if kind == "dismissed" else None,
        expired=kind not in ("value", "dismissed"),
        seen=answer.seen,
        question_id=answer.interrupt_id,
        secret_seen=answer.secret_seen,
    )


def read_failure(failure: payload_pb2.Failure, local: LocalRun | None) -> BaseException:
    """What a node has failed with: the very exception where this process has raised it."""
    if local is not None and (raised := local.find_error(failure)) is not None:
        return raised
    return node_error(failure)


__all__ = ["build_replay", "read_failure", "read_input"]
