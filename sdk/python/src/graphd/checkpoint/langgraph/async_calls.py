"""The async methods of a saver. Each calls the plain one in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata, CheckpointTuple

from graphd.threads import saver_threads

Config = Any  # RunnableConfig of LangChain, whose types need not be installed


class AsyncCalls(BaseCheckpointSaver[int]):
    """What LangGraph calls from coroutines."""

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like get_tuple."""
        return await saver_threads.run(self.get_tuple, config)

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
        while (found := await saver_threads.run(next, listed, None)) is not None:
            yield found

    async def aput(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> Config:
        """Like put."""
        return await saver_threads.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like put_writes."""
        await saver_threads.run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Like delete_thread."""
        await saver_threads.run(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like delete_for_runs."""
        await saver_threads.run(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like copy_thread."""
        await saver_threads.run(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Like prune."""
        await saver_threads.run(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Mapping[str, Any]:
        """Like get_delta_channel_history."""
        return await saver_threads.run(self.get_delta_channel_history, config=config, channels=channels)
