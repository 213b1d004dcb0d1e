"""A store in a graphd server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from graphd.errors import GraphdError
from graphd.security import Security
from graphd.server_choice import ServerChoice
from graphd.store.base import BaseStore, TTLConfig
from graphd.store.checks import check_operations, kind_of
from graphd.store.item_calls import build_call
from graphd.store.namespaces import validate_op_namespace
from graphd.store.operations import Op, Result
from graphd.threads import store_threads
from graphd.transport.attempts import Deadline
from graphd.transport.unary import Call, aperform_call, perform_call

T = TypeVar("T")
_MOST_AT_ONCE = 16


class GraphdStore(BaseStore):
    """Keeps items in a graphd server: all workers and clients of a tenant share them, and they outlive every process.

    ``compile(store=GraphdStore("host:port"))``. Without ``server`` and GRAPHD_SERVER the items are in a local server
    that ends with the process. ``security`` and the environment say how the server is called, ``timeout`` how many
    seconds an operation may take. ``ttl`` says how long items live whose ``put`` does not.

    Values are stored as JSON, and read as plain JSON. Items that are found come newest first. There is no index by
    meaning: a ``query`` raises NotImplementedError, and ``index`` of ``put`` has no effect. The operations of a batch
    read what was there before it, and are made at the same time: one that fails leaves the others done. Errors of
    calls are GraphdError. A store is safe to use from several threads and loops.
    """

    supports_ttl = True

    __slots__ = ("_choice", "_opened", "_timeout", "ttl_config")

    def __init__(
        self,
        server: str | None = None,
        *,
        security: Security | None = None,
        timeout: float | None = 60.0,
        ttl: TTLConfig | None = None,
    ) -> None:
        Deadline(timeout)  # refuses what is none
        self._choice = ServerChoice(server, security)
        self._timeout, self._opened = timeout, False
        self.ttl_config = ttl

    @classmethod
    def from_conn_string(cls, conn_string: str, *, ttl: TTLConfig | None = None) -> GraphdStore:
        """A store in a server as "host:port", for ``with`` and ``async with``, which need not end anything."""
        return cls(conn_string, ttl=ttl)

    def __enter__(self) -> GraphdStore:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> GraphdStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    @property
    def address(self) -> str:
        """Where the server is; starts it when there is none."""
        return self._choice.address

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries out operations; ValueError for one that is none."""
        operations, calls = _build_calls(ops)
        results: list[Result] = [None] * len(operations)
        for places in _plan_batch(operations):
            for place, result in zip(places, self._perform_all([calls[place] for place in places]), strict=True):
                results[place] = result
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like batch."""
        operations, calls = _build_calls(ops)
        results: list[Result] = [None] * len(operations)
        slots = asyncio.Semaphore(_MOST_AT_ONCE)
        for places in _plan_batch(operations):
            running = [self._aperform(calls[place], slots) for place in places]
            outcomes = await asyncio.gather(*running, return_exceptions=True)
            for place, outcome in zip(places, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                results[place] = outcome
        return results

    def _perform_all(self, calls: Sequence[Call[Result]]) -> list[Result]:
        if len(calls) == 1:
            return [self._perform(calls[0])]
        return store_threads.run_all([_bind(self._perform, call) for call in calls])

    def _perform(self, call: Call[Result]) -> Result:
        try:
            result = perform_call(self._choice.connection, call, Deadline(self._timeout), opened=self._opened)
        except GraphdError as error:
            _pass_missing(error)
            result = None
        self._opened = True
        return result

    async def _aperform(self, call: Call[Result], slots: asyncio.Semaphore) -> Result:
        async with slots:
            try:
                result = await aperform_call(
                    self._choice.connection, call, Deadline(self._timeout), opened=self._opened
                )
            except GraphdError as error:
                _pass_missing(error)
                result = None
            self._opened = True
            return result


def _bind(function: Callable[[Call[T]], T], call: Call[T]) -> Callable[[], T]:
    return lambda: function(call)


def _pass_missing(error: GraphdError) -> None:
    """Raises an error, unless it says that there is no such item."""
    if error.reason != "ITEM_NOT_FOUND":
        raise error


def _build_calls(ops: Iterable[Op]) -> tuple[list[Any], list[Call[Result]]]:
    """The operations of a batch and their calls: one that is wrong is refused before the first call."""
    operations = check_operations(ops)
    for op in operations:
        validate_op_namespace(op)
    return operations, [build_call(op) for op in operations]


def _plan_batch(operations: Sequence[Any]) -> list[list[int]]:
    """The places of the operations that are made: all reads, then the last write of each item."""
    reads = [place for place, op in enumerate(operations) if kind_of(op) != "PutOp"]
    writes = {(tuple(op.namespace), op.key): at for at, op in enumerate(operations) if kind_of(op) == "PutOp"}
    return [places for places in (reads, sorted(writes.values())) if places]


__all__ = ["GraphdStore"]
