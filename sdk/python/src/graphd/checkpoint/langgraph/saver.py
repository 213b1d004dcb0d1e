"""The saver that LangGraph calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from graphd.checkpoint.langgraph import threads
from graphd.checkpoint.langgraph.async_calls import AsyncCalls, Config
from graphd.checkpoint.langgraph.delta import measure_latest, read_delta_history
from graphd.checkpoint.langgraph.early_writes import EarlyWrites, Key
from graphd.checkpoint.langgraph.history import StoredCheckpoint, find_checkpoint, find_checkpoints
from graphd.checkpoint.langgraph.records import Record, SavedCheckpoint, TaskWrites
from graphd.checkpoint.langgraph.thread_log import LogEntry, ThreadLog
from graphd.checkpoint.langgraph.threads import Place
from graphd.errors import GraphdError
from graphd.security import Security
from graphd.server_choice import ServerChoice


class GraphdSaver(AsyncCalls):
    """Keeps the threads of LangGraph programs in a graphd server.

    LangGraph runs the graph, in the process of the program; ``compile(checkpointer=GraphdSaver("host:port"))``.
    Without ``server`` and GRAPHD_SERVER the threads are in a local server that ends with the process.
    ``security`` and the environment say how the server is called, ``serde`` makes bytes of values. All methods
    are safe to use from several threads; errors of calls are ``GraphdError``.
    """

    prefix = ""
    """For ``compile`` of graphd, which takes the saver as the name of the server that runs the graph."""

    def __init__(self, server: str | None = None, *, security: Security | None = None, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self._choice = ServerChoice(server, security)
        self._early = EarlyWrites()

    @property
    def address(self) -> str:
        """Where the server is; starts it when there is none."""
        return self._choice.address

    @property
    def security(self) -> Security:
        """How the server is called."""
        return self._choice.security

    @classmethod
    def from_conn_string(cls, conn_string: str, *, serde: Any = None) -> GraphdSaver:
        """A saver for a server as "host:port", for ``with`` and ``async with``, which need not end anything."""
        return cls(conn_string, serde=serde)

    def __enter__(self) -> GraphdSaver:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def __aenter__(self) -> GraphdSaver:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def setup(self) -> None:
        """Makes the graph of the saver's threads known to the server.

        The first ``put`` does it, too; a caller that may not put graphs has it done once by one that may.
        """
        threads.put_graph(self._choice.stubs)

    def _log_of(self, place: Place) -> ThreadLog:
        return ThreadLog(self._choice.stubs, place)

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the newest one of its namespace; None when there is none."""
        place, checkpoint_id = _place_of(config), _checkpoint_id_of(config)
        found = find_checkpoint(self._log_of(place).read(), checkpoint_id)
        return None if found is None else self._build_tuple(place, found)

    def list(
        self,
        config: Config | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a namespace, newest first.

        Those of all namespaces when the config names none, those of all threads without a config. ``filter`` compares
        keys of the metadata; only checkpoints with a smaller id than that of ``before`` are listed.
        """
        left = -1 if limit is None else max(limit, 0)
        wanted_id = None if config is None else _checkpoint_id_of(config)
        end = None if before is None else _checkpoint_id_of(before)
        for place in self._places_of(config):
            for stored in find_checkpoints(self._log_of(place).read()) if left else ():
                checkpoint_id = stored.saved.checkpoint_id
                if wanted_id not in (None, checkpoint_id) or (end is not None and checkpoint_id >= end):
                    continue
                metadata = self.serde.loads_typed(stored.saved.metadata)
                if any(metadata.get(key) != value for key, value in (filter or {}).items()):
                    continue
                yield self._build_tuple(place, stored)
                left -= 1
                if not left or wanted_id is not None:
                    break

    def _places_of(self, config: Config | None) -> Sequence[Place]:
        if config is None:
            return threads.find_places(self._choice.stubs, None)
        place = _place_of(config)
        if config["configurable"].get("checkpoint_ns") is None:
            return threads.find_places(self._choice.stubs, place.thread_id)
        return [place]

    def _build_tuple(self, place: Place, stored: StoredCheckpoint) -> CheckpointTuple:
        saved = stored.saved
        self._early.note_stored(Key(place, saved.checkpoint_id))
        return CheckpointTuple(
            config=_config_of(place, saved.checkpoint_id),
            checkpoint=self.serde.loads_typed(saved.value),
            metadata=self.serde.loads_typed(saved.metadata),
            parent_config=None if saved.parent_id is None else _config_of(place, saved.parent_id),
            pending_writes=[(task, ch, self.serde.loads_typed(value)) for task, ch, value in stored.pending_writes()],
        )

    def put(self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any) -> Config:
        """Stores a checkpoint with all its values, as the child of the one that the config names."""
        place = _place_of(config)
        log, key = self._log_of(place), Key(place, checkpoint["id"])
        saved = SavedCheckpoint(
            checkpoint["id"],
            _checkpoint_id_of(config),
            self.serde.dumps_typed(checkpoint),
            self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
        )
        early = self._early.writes_before(key)
        earlier = find_checkpoint(log.read(), key.checkpoint_id) if self._early.is_stored(key) else None
        log.append(Record(saved, early if earlier is None else earlier.writes))
        if late := self._early.note_stored(key, len(early)):
            log.append(Record(writes=late))
        return _config_of(place, key.checkpoint_id)

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Stores what a task wrote after the checkpoint that the config names.

        The same task again changes only its writes to special channels.
        """
        place, checkpoint_id = _place_of(config), _checkpoint_id_of(config)
        if checkpoint_id is None:
            raise ValueError(
                "config: configurable.checkpoint_id is missing; want the id of the checkpoint written after"
            )
        listed = (
            (WRITES_IDX_MAP.get(channel, index), channel, self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        )
        task = TaskWrites(checkpoint_id, task_id, task_path, tuple(listed))
        self._early.note_writes(Key(place, checkpoint_id), task)
        self._log_of(place).append(Record(writes=(task,)))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread with all its namespaces; one that is not there is no error."""
        for place in threads.find_places(self._choice.stubs, str(thread_id)):
            threads.delete_place(self._choice.stubs, place)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints whose metadata has one of the run ids, with their writes.

        It reads all threads of the server that LangGraph's savers have.
        """
        if wanted := set(run_ids):
            for place in threads.find_places(self._choice.stubs, None):
                self._log_of(place).rewrite(lambda entries: self._choose_other_runs(entries, wanted))

    def _choose_other_runs(self, entries: Iterator[LogEntry], run_ids: set[str]) -> Sequence[Record] | None:
        stored = list(find_checkpoints(entries))
        kept = [s for s in stored if self.serde.loads_typed(s.saved.metadata).get("run_id") not in run_ids]
        if len(kept) == len(stored):
            return None
        return [Record(s.saved, s.writes) for s in reversed(kept)]

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread with all its namespaces.

        Fails with THREAD_NOT_FOUND without a source, and with THREAD_EXISTS when there is a target.
        """
        places = threads.find_places(self._choice.stubs, str(source_thread_id))
        if not places:
            raise GraphdError(f"no thread {source_thread_id!r} to copy", reason="THREAD_NOT_FOUND", code="NOT_FOUND")
        for place in sorted(places, key=lambda p: p.namespace):
            self._log_of(place).copy_to(Place(str(target_thread_id), place.namespace))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes all but the newest checkpoint of each namespace of the threads.

        Older ones stay as far as values of a DeltaChannel need them. The strategy "delete" deletes the threads.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f'strategy {strategy!r}: want "keep_latest" or "delete"')
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            for place in threads.find_places(self._choice.stubs, str(thread_id)):
                self._log_of(place).cut(lambda entries: measure_latest(entries, self.serde))

    def get_delta_channel_history(self, *, config: Config, channels: Sequence[str]) -> Mapping[str, Any]:
        """For each channel its writes since the nearest ancestor with a value, and that value."""
        entries = self._log_of(_place_of(config)).read()
        return read_delta_history(entries, _checkpoint_id_of(config), channels, self.serde)


def _place_of(config: Config) -> Place:
    configurable = config.get("configurable") or {}
    if (thread_id := configurable.get("thread_id")) is None:
        raise ValueError("config: configurable.thread_id is missing; want the id of a thread")
    place = Place(str(thread_id), configurable.get("checkpoint_ns") or "")
    for key, text in (("thread_id", place.thread_id), ("checkpoint_ns", place.namespace)):
        if (length := len(text.encode())) > threads.LONGEST_LABEL:
            raise ValueError(f"config: configurable.{key} has {length} bytes; want at most {threads.LONGEST_LABEL}")
    return place


def _checkpoint_id_of(config: Config) -> str | None:
    return (config.get("configurable") or {}).get("checkpoint_id") or None


def _config_of(place: Place, checkpoint_id: str) -> Config:
    return {
        "configurable": {
            "thread_id": place.thread_id,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
