"""One call of a task: found in the journal, or run and recorded."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphd import codec
from graphd.errors import GraphInterrupt, LimitExceededError
from graphd.func.called_task import build_called_task
from graphd.func.result import build_ended_future, find_running_loop, mark_retrieved
from graphd.func.retries import Retries
from graphd.func.task_events import TaskEvents
from graphd.func.timeout import run_with_timeout
from graphd.runtime.ask import question_of
from graphd.runtime.effect import idempotency_key
from graphd.runtime.task import CurrentTask, current_scope, enter_task, required_task
from graphd.values.policy import CachePolicy, RetryPolicy, TimeoutPolicy


@dataclass(frozen=True)
class TaskDeclaration:
    """A function that is a task, and how it is run."""

    function: Callable[..., Any]
    name: str
    is_async: bool
    decode: Callable[[Any], Any]
    retry: tuple[RetryPolicy, ...] = ()
    cache: CachePolicy | None = None
    timeout: TimeoutPolicy | None = None

    @property
    def cache_prefix(self) -> str:
        """What the keys of the task in a cache begin with."""
        function = self.function
        return f"task:{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', self.name)}/"


def start_call(declared: TaskDeclaration, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Runs the task beside the calling code, or finds its result; returns a future."""
    caller = required_task(f"task {declared.name!r}")
    scope = current_scope()
    caller.note_progress()
    place, is_known, value = caller.replay.look_up_memo(scope, f"task:{declared.name}")
    inside = f"{scope}/{place.key}:{place.index}" if scope else f"{place.key}:{place.index}"
    identifier = idempotency_key(caller.host.thread, caller.host.task, place)
    events = TaskEvents(caller.host, identifier, declared.name)
    events.report_begin(args, kwargs)
    if is_known:
        caller.replay.skip_scope(inside)
        return build_ended_future(declared.decode(value))
    if (waiting := caller.replay.open_question(scope)) is not None:
        # The caller has caught the interrupt: nothing new may happen after it.
        raise GraphInterrupt((question_of(waiting),))
    caller.replay.begin_scope(inside)
    task = build_called_task(caller, declared.name, identifier, place.index)
    call = _Call(declared, tuple(args), dict(kwargs), place, task, inside, events)
    return call.start(caller)


@dataclass(frozen=True)
class _Call:
    """A call whose result is not known."""

    declared: TaskDeclaration
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    place: Any
    task: CurrentTask
    scope: str
    events: TaskEvents

    def start(self, caller: CurrentTask) -> Any:
        """Begins to run; a future of the kind that the calling code expects."""
        variables, loop = contextvars.copy_context(), find_running_loop()
        variables.run(enter_task, self.task, self.scope)
        if not self.declared.is_async:
            most = caller.config.get("max_concurrency")
            future = caller.running.submit_call(lambda: variables.run(self._run), most)
            return future if loop is None else mark_retrieved(asyncio.wrap_future(future))
        if loop is not None:
            begun = variables.run(loop.create_task, self._arun())
            caller.running.add_future(begun)
            return mark_retrieved(begun)
        elsewhere = variables.run(_start_on_loop, self._arun(), caller.environment.find_loop())
        caller.running.add_future(elsewhere)
        return elsewhere

    # Plain.

    def _run(self) -> Any:
        try:
            with self.task.environment.stream_tokens(self.task):
                if (cached := self._read_cache()) is not None:
                    return self._finish(self.task.host.record_memo(self.place, cached), is_cached=True)
                result = self._try_until_done()
            with self._name_task_in_limits():
                recorded = self.task.host.record_memo(self.place, self._to_record(result))
        except Exception as error:
            self.events.report_failure(error)
            raise
        return self._finish(recorded)

    def _try_until_done(self) -> Any:
        retries = Retries(self.declared.retry, self.task, self.scope)
        while True:
            self.task.host.confirm_lease()
            try:
                result = self.declared.function(*self.args, **self.kwargs)
            except Exception as error:
                self.task.running.wait_for_all(cancel=False)
                pause = retries.find_pause(error)
            else:
                self.task.running.wait_for_all(cancel=False)
                self._check_unasked()
                return result
            time.sleep(pause)

    # Async.

    async def _arun(self) -> Any:
        try:
            with self.task.environment.stream_tokens(self.task):
                if (cached := self._read_cache()) is not None:
                    return self._finish(await self.task.host.arecord_memo(self.place, cached), is_cached=True)
                result = await self._atry_until_done()
            with self._name_task_in_limits():
                recorded = await self.task.host.arecord_memo(self.place, self._to_record(result))
        except Exception as error:
            self.events.report_failure(error)
            raise
        return self._finish(recorded)

    async def _atry_until_done(self) -> Any:
        retries = Retries(self.declared.retry, self.task, self.scope)
        while True:
            await self.task.host.aconfirm_lease()
            try:
                coroutine = self.declared.function(*self.args, **self.kwargs)
                result = await run_with_timeout(self.declared.timeout, self.declared.name, self.task, coroutine)
            except Exception as error:
                await self.task.running.await_all(cancel=False)
                pause = retries.find_pause(error)
            else:
                await self.task.running.await_all(cancel=False)
                self._check_unasked()
                return result
            await asyncio.sleep(pause)

    # Both.

    def _check_unasked(self) -> None:
        """A task that has caught its own interrupt has not ended."""
        if self.task.replay.asks_within(self.scope):
            raise GraphInterrupt(())

    def _to_record(self, result: Any) -> codec.Tagged:
        tagged = codec.Tagged(result)
        try:
            text = codec.dumps(tagged)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"task {self.declared.name!r}: the result can't be stored: {error}") from error
        if (key := self._cache_key()) is not None:
            policy = self.declared.cache
            self.task.environment.cache.write(key, text.encode(), policy.ttl if policy else None)
        return tagged

    @contextlib.contextmanager
    def _name_task_in_limits(self) -> Iterator[None]:
        """A block in which errors of limits say which task has exceeded them."""
        try:
            yield
        except LimitExceededError as error:
            text = f"the result of task {self.declared.name!r} can't be stored: {error}"
            raise LimitExceededError(
                text, reason=error.reason, code=error.code, metadata=error.metadata, violations=error.violations
            ) from error

    def _finish(self, recorded: Any, *, is_cached: bool = False) -> Any:
        self.task.replay.keep_memo(self.place, recorded)
        self.events.report_end(recorded, is_cached=is_cached)
        return self.declared.decode(recorded)

    def _cache_key(self) -> str | None:
        policy = self.declared.cache
        if policy is None or self.task.environment.cache is None:
            return None
        key: Any = policy.key_func(*self.args, **self.kwargs)
        return self.declared.cache_prefix + (key.hex() if isinstance(key, bytes) else str(key))

    def _read_cache(self) -> codec.Tagged | None:
        key = self._cache_key()
        known = self.task.environment.cache.read(key) if key is not None else None
        return None if known is None else codec.Tagged(codec.loads(known.decode()))


def _start_on_loop(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


__all__ = ["TaskDeclaration", "start_call"]
