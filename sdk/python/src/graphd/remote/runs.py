"""Runs: starting, following, answering and ending them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal

from graphd.remote import run_calls
from graphd.remote.caller import AsyncCaller, Caller
from graphd.remote.cursor import Cursor
from graphd.remote.question import Answers
from graphd.remote.run import Run
from graphd.remote.run_calls import Modes
from graphd.remote.run_options import ResumeOptions, RunOptions
from graphd.remote.run_stream import AsyncRunStream, RunStream
from graphd.transport.attempts import Deadline

_DEFAULTS = RunOptions()
_KEEP = ResumeOptions()


class Runs:
    """The runs of a server."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def start(
        self, graph: str, input: Any = None, *, thread_id: str | None = None, options: RunOptions = _DEFAULTS
    ) -> Run:
        """Starts a run, and returns as soon as it is stored.

        ``input`` is an update of the state, None to go on with what the thread has left to do, or a Command with
        ``update`` and ``goto``. The thread is made when there is none; without a ``thread_id`` it gets an id of
        its own. Raises ThreadBusyError while another run is active, and OpenQuestionsError
        where questions are open, unless the options say otherwise.
        """
        request = run_calls.build_start(graph, input, thread_id, options, subgraphs=False)
        return self._caller.perform(run_calls.start_run(request))

    def stream(
        self,
        graph: str,
        input: Any = None,
        *,
        thread_id: str | None = None,
        options: RunOptions = _DEFAULTS,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> RunStream:
        """Starts a run, and follows it until it ends or waits for people. Arguments as in ``start``.

        ``stream_mode`` is one of values, updates, messages, custom, tasks, checkpoints and debug, or several;
        ``subgraphs`` shows what happens below too. After ``timeout`` seconds CallTimeoutError is raised, and the
        run goes on.
        """
        request = run_calls.build_start(graph, input, thread_id, options, stream_mode, subgraphs=subgraphs)
        return RunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    def resume(self, thread_id: str, answers: Answers, *, options: ResumeOptions = _KEEP) -> Run:
        """Answers open questions of a thread, and returns as soon as the answers are stored: all or none.

        ``answers`` are values by ``question_id``, an ``Answer`` or ``Dismissal``, or several; None goes on after
        breakpoints. Raises NothingToResumeError, AmbiguousResumeError for one answer without an id where several
        questions are open, InvalidResumeError, and ConflictError.
        """
        request = run_calls.build_resume(thread_id, answers, options, subgraphs=False)
        return self._caller.perform(run_calls.resume_run(request))

    def stream_resume(
        self,
        thread_id: str,
        answers: Answers,
        *,
        options: ResumeOptions = _KEEP,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> RunStream:
        """Like ``resume``, and follows the run that goes on, as ``stream`` does."""
        request = run_calls.build_resume(thread_id, answers, options, stream_mode, subgraphs=subgraphs)
        return RunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    def watch(
        self,
        thread_id: str,
        run_id: str,
        *,
        after: Cursor | None = None,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> RunStream:
        """Follows a run that exists: from its beginning, or from after a cursor of an earlier stream."""
        request = run_calls.build_watch(thread_id, run_id, after, stream_mode, subgraphs=subgraphs)
        return RunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    def wait(self, thread_id: str, run_id: str = "", *, timeout: float | None = None) -> Run:
        """Waits until a run has succeeded or waits for people, and returns it; raises why it has failed.

        Without a ``run_id`` it is the newest run of the thread. After ``timeout`` seconds CallTimeoutError is
        raised, and the run goes on.
        """
        run = self._caller.with_timeout(timeout).perform(run_calls.wait_run(thread_id, run_id))
        run.raise_error()
        return run

    def get(self, thread_id: str, run_id: str) -> Run:
        """Reads a run, whatever has become of it."""
        return self._caller.perform(run_calls.get_run(thread_id, run_id))

    def list(
        self, thread_id: str, *, state: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Iterator[Run]:
        """Lists the runs of a thread, newest first: those in a state, and with these labels."""
        return self._caller.list_entries(lambda token: run_calls.list_runs(thread_id, state, metadata, token))

    def cancel(
        self,
        thread_id: str,
        run_id: str = "",
        *,
        checkpoints: Literal["keep", "rollback"] = "keep",
        grace: float = 0.0,
        reason: str = "",
        wait: bool = False,
    ) -> Run:
        """Asks a run to stop: the active one without a ``run_id``.

        ``grace`` is how many seconds running nodes may go on, ``reason`` is for the record. ``wait`` returns when
        the run has stopped. ``checkpoints="rollback"`` removes what it has made.
        """
        call = run_calls.cancel_run(thread_id, run_id, checkpoints, grace, reason, wait=wait)
        return self._caller.perform(call)


class AsyncRuns:
    """The runs of a server, for async programs. The methods are those of Runs."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def start(
        self, graph: str, input: Any = None, *, thread_id: str | None = None, options: RunOptions = _DEFAULTS
    ) -> Run:
        """Like Runs.start."""
        request = run_calls.build_start(graph, input, thread_id, options, subgraphs=False)
        return await self._caller.perform(run_calls.start_run(request))

    def stream(
        self,
        graph: str,
        input: Any = None,
        *,
        thread_id: str | None = None,
        options: RunOptions = _DEFAULTS,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> AsyncRunStream:
        """Like Runs.stream; ``async with`` opens it."""
        request = run_calls.build_start(graph, input, thread_id, options, stream_mode, subgraphs=subgraphs)
        return AsyncRunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    async def resume(self, thread_id: str, answers: Answers, *, options: ResumeOptions = _KEEP) -> Run:
        """Like Runs.resume."""
        request = run_calls.build_resume(thread_id, answers, options, subgraphs=False)
        return await self._caller.perform(run_calls.resume_run(request))

    def stream_resume(
        self,
        thread_id: str,
        answers: Answers,
        *,
        options: ResumeOptions = _KEEP,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> AsyncRunStream:
        """Like Runs.stream_resume."""
        request = run_calls.build_resume(thread_id, answers, options, stream_mode, subgraphs=subgraphs)
        return AsyncRunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    def watch(
        self,
        thread_id: str,
        run_id: str,
        *,
        after: Cursor | None = None,
        stream_mode: Modes = "updates",
        subgraphs: bool = False,
        timeout: float | None = None,
    ) -> AsyncRunStream:
        """Like Runs.watch."""
        request = run_calls.build_watch(thread_id, run_id, after, stream_mode, subgraphs=subgraphs)
        return AsyncRunStream(self._caller.connection, request, stream_mode, Deadline(timeout), subgraphs=subgraphs)

    async def wait(self, thread_id: str, run_id: str = "", *, timeout: float | None = None) -> Run:
        """Like Runs.wait."""
        run = await self._caller.with_timeout(timeout).perform(run_calls.wait_run(thread_id, run_id))
        run.raise_error()
        return run

    async def get(self, thread_id: str, run_id: str) -> Run:
        """Like Runs.get."""
        return await self._caller.perform(run_calls.get_run(thread_id, run_id))

    def list(
        self, thread_id: str, *, state: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Run]:
        """Like Runs.list; for ``async for``."""
        return self._caller.list_entries(lambda token: run_calls.list_runs(thread_id, state, metadata, token))

    async def cancel(
        self,
        thread_id: str,
        run_id: str = "",
        *,
        checkpoints: Literal["keep", "rollback"] = "keep",
        grace: float = 0.0,
        reason: str = "",
        wait: bool = False,
    ) -> Run:
        """Like Runs.cancel."""
        call = run_calls.cancel_run(thread_id, run_id, checkpoints, grace, reason, wait=wait)
        return await self._caller.perform(call)
