"""Savers that name a local server."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphd._gen.v1 import thread_service_pb2 as ts
from graphd.checkpoint.given_serde import check_serde
from graphd.compatibility.imports import explain_absent_names
from graphd.names import wire_thread
from graphd.security import Security
from graphd.server_choice import ServerChoice
from graphd.threads import run_blocking
from graphd.transport.server import call_unary, retry_write


class InMemorySaver:
    """Keeps threads in a server that ends with this process.

    All of them share one server; the threads of one saver are its own. With
    ``server``, or GRAPHD_SERVER, they are kept in a server that stays, and
    ``security`` and the environment say how it is called. ``serde`` may be the
    JsonPlusSerializer of LangGraph, and changes nothing: values are stored as
    JSON. Any other raises NotImplementedError, as it may encrypt.
    """

    def __init__(self, *, server: str | None = None, security: Security | None = None, serde: object = None) -> None:
        check_serde(serde)
        self._choice = ServerChoice(server, security)
        self.prefix = f"m{uuid.uuid4().hex[:10]}." if self._choice.is_local else ""

    @property
    def address(self) -> str:
        """Where the server is; starts it when there is none."""
        return self._choice.address

    @property
    def security(self) -> Security:
        """How the server is called."""
        return self._choice.security

    @property
    def _stubs(self) -> Any:
        return self._choice.stubs

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread with everything that belongs to it."""
        request = ts.DeleteThreadRequest(thread_id=wire_thread(self.prefix, thread_id), force=True)
        call_unary(self._stubs.threads.DeleteThread, request)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread with its history and its open questions.

        The copy goes on by itself. Fails while a run of the source is active,
        and when there is a thread of the new name.
        """
        request = ts.CopyThreadRequest(
            source_thread_id=wire_thread(self.prefix, source_thread_id),
            thread_id=wire_thread(self.prefix, target_thread_id),
            request_id=uuid.uuid4().hex,
        )
        retry_write(self._stubs.threads.CopyThread, request)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like copy_thread."""
        await run_blocking(self.copy_thread, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes all but the newest checkpoint of each thread.

        What a thread needs to go on stays. The strategy "delete" deletes the
        threads.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f'strategy {strategy!r}: want "keep_latest" or "delete"')
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            request = ts.PruneThreadRequest(thread_id=wire_thread(self.prefix, thread), keep_checkpoints=1)
            call_unary(self._stubs.threads.PruneThread, request)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Like prune."""
        await run_blocking(self.prune, thread_ids, strategy=strategy)

    async def adelete_thread(self, thread_id: str) -> None:
        """Like delete_thread."""
        await run_blocking(self.delete_thread, thread_id)


MemorySaver = InMemorySaver

if not TYPE_CHECKING:  # it would take every name for one of the module
    __getattr__ = explain_absent_names(__name__)

__all__ = ["InMemorySaver", "MemorySaver"]
