"""Threads: their states, their histories, and their ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from graphd.client.history import fold_checkpoints
from graphd.remote import thread_calls
from graphd.remote.caller import AsyncCaller, Caller
from graphd.remote.thread import Thread
from graphd.values.state import StateSnapshot


class Threads:
    """The threads of a server."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        thread_id: str | None = None,
        *,
        graph: str = "",
        version: str = "",
        metadata: Mapping[str, Any] | None = None,
        ttl: float | None = None,
    ) -> Thread:
        """Makes a thread, with an id of its own when none is given. ``runs.start`` makes threads, too.

        ``ttl`` is how many seconds after its last change it is deleted. Raises AlreadyExistsError, and
        NotFoundError for the graph.
        """
        return self._caller.perform(thread_calls.create_thread(thread_id, graph, version, metadata, ttl))

    def get(self, thread_id: str, *, values: bool = False) -> Thread:
        """Reads a thread; ``values`` adds its state and its open questions."""
        return self._caller.perform(thread_calls.get_thread(thread_id, values=values))

    def list(
        self, *, graph: str | None = None, state: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Iterator[Thread]:
        """Lists threads: last changed first; of a graph, in a state, or with these labels, last created first."""
        return self._caller.list_entries(lambda token: thread_calls.list_threads(graph, state, metadata, token))

    def set_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> Thread:
        """Replaces the labels of a thread."""
        return self._caller.perform(thread_calls.set_metadata(thread_id, metadata))

    def delete(self, thread_id: str, *, force: bool = False) -> None:
        """Deletes a thread with everything that belongs to it; ``force`` stops its run.

        The call is not repeated. Raises ThreadBusyError and NotFoundError.
        """
        self._caller.perform(thread_calls.delete_thread(thread_id, force=force))

    def copy(self, thread_id: str, target: str | None = None) -> Thread:
        """Makes a thread that is what another is: its history, and its questions, which are answered apart."""
        return self._caller.perform(thread_calls.copy_thread(thread_id, target))

    def get_state(
        self,
        thread_id: str,
        *,
        checkpoint_id: str = "",
        namespace: Sequence[str] = (),
        keys: Sequence[str] = (),
        subgraphs: bool = False,
    ) -> StateSnapshot:
        """Reads the newest state, or that of a checkpoint, as plain JSON.

        ``namespace`` names a subgraph by its levels, ``keys`` the keys to read, which helps where a whole state is
        too large for a message (LimitExceededError). Raises NotFoundError.
        """
        call = thread_calls.get_state(thread_id, checkpoint_id, namespace, keys, subgraphs=subgraphs)
        return self._caller.perform(call)

    def get_history(
        self, thread_id: str, *, namespace: Sequence[str] = (), values: bool = True
    ) -> Iterator[StateSnapshot]:
        """Reads the checkpoints of a thread, newest first; without their values on request."""
        stored = self._caller.list_entries(
            lambda token: thread_calls.list_checkpoints(thread_id, namespace, token, values=values)
        )
        for state in fold_checkpoints(stored):
            yield thread_calls.read_snapshot(thread_id, state)

    def update_state(
        self,
        thread_id: str,
        values: Any,
        *,
        as_node: str | None = None,
        checkpoint_id: str = "",
        drop_questions: bool = False,
    ) -> StateSnapshot:
        """Writes to the state as if a node had done it, and returns the new one.

        ``as_node`` may be left out when it is clear which node ran last; otherwise InvalidUpdateError is raised.
        ``checkpoint_id`` is the checkpoint to build on. OpenQuestionsError is raised where
        questions are open, unless they may be dropped.
        """
        call = thread_calls.update_state(thread_id, values, as_node, checkpoint_id, drop_questions=drop_questions)
        return self._caller.perform(call)


class AsyncThreads:
    """The threads of a server, for async programs. The methods are those of Threads."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        thread_id: str | None = None,
        *,
        graph: str = "",
        version: str = "",
        metadata: Mapping[str, Any] | None = None,
        ttl: float | None = None,
    ) -> Thread:
        """Like Threads.create."""
        return await self._caller.perform(thread_calls.create_thread(thread_id, graph, version, metadata, ttl))

    async def get(self, thread_id: str, *, values: bool = False) -> Thread:
        """Like Threads.get."""
        return await self._caller.perform(thread_calls.get_thread(thread_id, values=values))

    def list(
        self, *, graph: str | None = None, state: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Thread]:
        """Like Threads.list; for ``async for``."""
        return self._caller.list_entries(lambda token: thread_calls.list_threads(graph, state, metadata, token))

    async def set_metadata(self, thread_id: str, metadata: Mapping[str, Any]) -> Thread:
        """Like Threads.set_metadata."""
        return await self._caller.perform(thread_calls.set_metadata(thread_id, metadata))

    async def delete(self, thread_id: str, *, force: bool = False) -> None:
        """Like Threads.delete."""
        await self._caller.perform(thread_calls.delete_thread(thread_id, force=force))

    async def copy(self, thread_id: str, target: str | None = None) -> Thread:
        """Like Threads.copy."""
        return await self._caller.perform(thread_calls.copy_thread(thread_id, target))

    async def get_state(
        self,
        thread_id: str,
        *,
        checkpoint_id: str = "",
        namespace: Sequence[str] = (),
        keys: Sequence[str] = (),
        subgraphs: bool = False,
    ) -> StateSnapshot:
        """Like Threads.get_state."""
        call = thread_calls.get_state(thread_id, checkpoint_id, namespace, keys, subgraphs=subgraphs)
        return await self._caller.perform(call)

    async def get_history(
        self, thread_id: str, *, namespace: Sequence[str] = (), values: bool = True
    ) -> AsyncIterator[StateSnapshot]:
        """Like Threads.get_history; for ``async for``. All pages are read before the first checkpoint is shown."""
        stored = self._caller.list_entries(
            lambda token: thread_calls.list_checkpoints(thread_id, namespace, token, values=values)
        )
        for state in fold_checkpoints([one async for one in stored]):
            yield thread_calls.read_snapshot(thread_id, state)

    async def update_state(
        self,
        thread_id: str,
        values: Any,
        *,
        as_node: str | None = None,
        checkpoint_id: str = "",
        drop_questions: bool = False,
    ) -> StateSnapshot:
        """Like Threads.update_state."""
        call = thread_calls.update_state(thread_id, values, as_node, checkpoint_id, drop_questions=drop_questions)
        return await self._caller.perform(call)
