"""The async methods of a saver. Each calls the plain one in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, CheckpointTuple

T = TypeVar("T")
Config = Any  # RunnableConfig of LangChain, whose types need not be installed

_threads = ThreadPoolExecutor(32, thread_name_prefix="graphd-saver")


class AsyncCalls(BaseCheckpointSaver[int]):
    """What LangGraph calls from coroutines."""

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like get_tuple."""
        return await _run_in_thread(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: Config | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like list."""
        listed = self.list(config, filter=filter, before=before, limit=limit)
        while (found := await _run_in_thread(lambda: next(listed, None))) is not None:
            yield found

    async def aput(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> Config:
        """Like put."""
        return await _run_in_thread(lambda: self.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like put_writes."""
        await _run_in_thread(lambda: self.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Like delete_thread."""
        await _run_in_thread(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like delete_for_runs."""
        await _run_in_thread(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like copy_thread."""
        await _run_in_thread(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Like prune."""
        await _run_in_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Mapping[str, Any]:
        """Like get_delta_channel_history."""
        return await _run_in_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))


async def _run_in_thread(call: Callable[[], T]) -> T:
    """In a thread of the saver's own: nodes of the program may have taken all of the loop's."""
    return await asyncio.get_running_loop().run_in_executor(_threads, call)
