"""The calls about runs: their requests, and what the answers mean."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from graphd._gen.v1 import graph_service_pb2 as gs
from graphd._gen.v1 import run_pb2
from graphd.client import run_request
from graphd.client.items import filter_of
from graphd.client.options import CallOptions
from graphd.client.stream_format import StreamFormat
from graphd.declare.graph_shape import UndeclaredGraph
from graphd.declare.options import node_names
from graphd.names import wire_thread
from graphd.remote.caller import Page
from graphd.remote.cursor import Cursor, write_cursor
from graphd.remote.fields import write_filter, write_metadata_filter
from graphd.remote.question import Answers, write_answers
from graphd.remote.run import Run, read_run
from graphd.remote.run_options import ResumeOptions, RunOptions
from graphd.transport.unary import Call
from graphd.values.command import Command

_PAGE = 100
_BUSY = {
    "reject": run_pb2.CONCURRENCY_POLICY_REJECT,
    "enqueue": run_pb2.CONCURRENCY_POLICY_ENQUEUE,
    "cancel": run_pb2.CONCURRENCY_POLICY_CANCEL_ACTIVE,
    "rollback": run_pb2.CONCURRENCY_POLICY_ROLLBACK_ACTIVE,
}
_OPEN = {
    "reject": run_pb2.OPEN_INTERRUPT_POLICY_UNSPECIFIED,
    "discard": run_pb2.OPEN_INTERRUPT_POLICY_DISCARD,
    "enqueue": run_pb2.OPEN_INTERRUPT_POLICY_ENQUEUE,
}
Modes = str | Sequence[str]


def build_start(
    graph: str, given: Any, thread_id: str | None, options: RunOptions, modes: Modes = "updates", *, subgraphs: bool
) -> gs.StreamRequest:
    """The request that starts a run and follows it."""
    if isinstance(given, Command) and given.resume is not None:
        raise ValueError("input is an answer, Command(resume=…): give it to runs.resume or inbox.answer")
    config: dict[str, Any] = {
        "metadata": options.metadata,
        "recursion_limit": options.recursion_limit,
        "configurable": {"checkpoint_id": options.checkpoint_id or None},
    }
    call = _build_spec(graph, thread_id, config, options, modes, version=options.version, subgraphs=subgraphs)
    request = run_request.build_request(call, given)
    assert isinstance(request, gs.StreamRequest)
    request.run.run_id = options.run_id
    request.run.expected_checkpoint_id = options.expected_checkpoint_id
    request.run.concurrency = _BUSY[options.when_busy]
    request.run.open_interrupts = _OPEN[options.open_questions]
    if options.run_timeout is not None:
        request.run.run_timeout.FromNanoseconds(round(options.run_timeout * 1e9))
    if options.begin_after is not None:
        request.run.begin_after.FromNanoseconds(round(options.begin_after * 1e9))
    request.request_id = options.request_id or request.request_id
    return request


def build_resume(
    thread_id: str, answers: Answers, options: ResumeOptions, modes: Modes = "updates", *, subgraphs: bool
) -> gs.ResumeRequest:
    """The request that answers questions and follows the run."""
    config = {"metadata": options.metadata, "recursion_limit": options.recursion_limit}
    call = _build_spec("", thread_id, config, options, modes, version="", subgraphs=subgraphs)
    command: Command[Any] = Command(update=options.update, goto=options.goto)
    request = run_request.build_resume(call, write_answers(answers), command)
    request.request_id = options.request_id or request.request_id
    return request


def build_watch(thread_id: str, run_id: str, after: Cursor | None, modes: Modes, *, subgraphs: bool) -> gs.WatchRequest:
    """The request that follows a run from its beginning, or from after an event."""
    request = gs.WatchRequest(thread_id=wire_thread("", thread_id), run_id=run_id, follow=True)
    if not run_id:
        raise ValueError("run_id is missing: want the run to follow, such as Run.run_id or Thread.run_id")
    request.filter.CopyFrom(filter_of(_read_modes(modes), subgraphs=subgraphs, some_keys=False))
    if after is not None:
        request.after.CopyFrom(write_cursor(after))
    return request


def _build_spec(
    graph: str,
    thread_id: str | None,
    config: Mapping[str, Any],
    options: RunOptions | ResumeOptions,
    modes: Modes,
    *,
    version: str,
    subgraphs: bool,
) -> run_request.CallSpec:
    given = (options.context, options.interrupt_before, options.interrupt_after)
    return run_request.CallSpec(
        program=UndeclaredGraph(graph),
        version=version,
        request_id=uuid.uuid4().hex,
        thread=wire_thread("", uuid.uuid4().hex if thread_id is None else thread_id),
        config=config,
        options=CallOptions(
            stream_format=StreamFormat(modes, subgraphs=subgraphs, version="v1"),
            context=options.context,
            interrupt_before=node_names(options.interrupt_before),
            interrupt_after=node_names(options.interrupt_after),
            subgraphs=subgraphs,
            gives_settings=any(one is not None for one in given),
        ),
        event_filter=filter_of(_read_modes(modes), subgraphs=subgraphs, some_keys=False),
        withheld=run_request.OPTIONAL_RIGHTS,
    )


def _read_modes(modes: Modes) -> tuple[str, ...]:
    return StreamFormat(modes, subgraphs=False, version="v1").modes


def start_run(request: gs.StreamRequest) -> Call[Run]:
    """Starts a run, and does not follow it."""
    start = gs.StartRunRequest(run=request.run, request_id=request.request_id)
    return Call(lambda s: s.graphs.StartRun, start, read_run)


def resume_run(request: gs.ResumeRequest) -> Call[Run]:
    """Answers questions, and does not follow the run."""
    resume = gs.ResumeRunRequest(resume=request.resume, request_id=request.request_id)
    return Call(lambda s: s.graphs.ResumeRun, resume, read_run)


def get_run(thread_id: str, run_id: str) -> Call[Run]:
    """Reads a run."""
    request = gs.GetRunRequest(thread_id=wire_thread("", thread_id), run_id=run_id)
    return Call(lambda s: s.graphs.GetRun, request, read_run)


def wait_run(thread_id: str, run_id: str) -> Call[Run]:
    """Waits until a run stops: the newest of the thread when no id is given."""
    request = gs.WaitRunRequest(thread_id=wire_thread("", thread_id), run_id=run_id)
    return Call(lambda s: s.graphs.WaitRun, request, read_run)


def list_runs(thread_id: str, state: str | None, metadata: Mapping[str, Any] | None, token: str) -> Call[Page[Run]]:
    """Reads a page of the runs of a thread."""
    conditions = {"state": state.upper() if state else None} | write_metadata_filter(metadata)
    request = gs.ListRunsRequest(
        thread_id=wire_thread("", thread_id), page_size=_PAGE, page_token=token, filter=write_filter(conditions)
    )
    return Call(
        lambda s: s.graphs.ListRuns, request, lambda r: Page([read_run(one) for one in r.runs], r.next_page_token)
    )


def cancel_run(
    thread_id: str, run_id: str, action: Literal["keep", "rollback"], grace: float, reason: str, *, wait: bool
) -> Call[Run]:
    """Asks a run to stop."""
    actions = {"keep": gs.CancelRunRequest.ACTION_KEEP, "rollback": gs.CancelRunRequest.ACTION_ROLLBACK}
    if action not in actions:
        raise ValueError(f"checkpoints is {action!r}: want keep or rollback")
    if not grace >= 0:
        raise ValueError(f"grace is {grace!r}: want seconds, 0 or more")
    request = gs.CancelRunRequest(
        thread_id=wire_thread("", thread_id), run_id=run_id, action=actions[action], wait=wait, reason=reason
    )
    request.grace.FromNanoseconds(round(grace * 1e9))
    return Call(lambda s: s.graphs.CancelRun, request, read_run)
